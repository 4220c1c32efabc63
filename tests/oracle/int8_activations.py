"""mlx-lm with the inputs of every matrix product rounded to int8 per group of 32: how far that rounding alone moves logits."""

import contextlib
from unittest import mock

import mlx.core as mx
import mlx.nn as nn

GROUP = 32


def rounded(x: mx.array) -> mx.array:
    groups = x.reshape(*x.shape[:-1], -1, GROUP)
    step = mx.abs(groups).max(axis=-1, keepdims=True) / 127
    codes = mx.round(groups / mx.where(step == 0, 1, step))
    return (codes * step).reshape(x.shape)


@contextlib.contextmanager
def int8_products():
    with contextlib.ExitStack() as stack:
        for owner, name in [
            (nn.Linear, "__call__"),
            (nn.QuantizedLinear, "__call__"),
            (nn.Embedding, "as_linear"),
            (nn.QuantizedEmbedding, "as_linear"),
        ]:
            plain = getattr(owner, name)
            patched = lambda self, x, plain=plain: plain(self, rounded(x))  # noqa: E731
            stack.enter_context(mock.patch.object(owner, name, patched))
        yield
