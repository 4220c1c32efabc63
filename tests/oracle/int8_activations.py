"""mlx-lm with the inputs of every matrix product rounded to int8 per group of 16: how far that rounding alone moves logits.

Not the inputs of what chooses among experts or weighs them, nor of the gates of a recurrence, which native mode computes in
f32.
"""

import contextlib
from unittest import mock

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models import switch_layers

GROUP = 16
IN_F32 = ("mlp.gate", "shared_expert_gate", "router.proj", "linear_attn.in_proj_a", "linear_attn.in_proj_b", "in_proj_ba")


def rounded(x: mx.array) -> mx.array:
    groups = x.astype(mx.float32).reshape(*x.shape[:-1], -1, GROUP)
    step = mx.abs(groups).max(axis=-1, keepdims=True) / 127
    codes = mx.round(groups / mx.where(step == 0, 1, step))
    return (codes * step).reshape(x.shape).astype(x.dtype)


@contextlib.contextmanager
def int8_products(model: nn.Module):
    spared = {id(module) for path, module in model.named_modules() if path.endswith(IN_F32)}
    with contextlib.ExitStack() as stack:
        for owner, name in [
            (nn.Linear, "__call__"),
            (nn.QuantizedLinear, "__call__"),
            (nn.Embedding, "as_linear"),
            (nn.QuantizedEmbedding, "as_linear"),
            (switch_layers.SwitchLinear, "__call__"),
            (switch_layers.QuantizedSwitchLinear, "__call__"),
        ]:
            plain = getattr(owner, name)
            patched = lambda self, x, *rest, plain=plain, **named: plain(  # noqa: E731
                self, x if id(self) in spared else rounded(x), *rest, **named
            )
            stack.enter_context(mock.patch.object(owner, name, patched))
        yield
