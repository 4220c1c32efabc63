"""Dense experts of bf16 and f16, which mlx-lm cannot run on CPU: MLX gathers dense matrices there in f32 alone.

What stands in for the gather is one product an expert by MLX's own matmul in the checkpoint's dtype. Over weights in f32,
where mlx-lm runs as it is, `check` holds that both give the same bits: the stand-in differs from mlx-lm in nothing but the
dtype that it takes.
"""

import contextlib
import typing

import mlx.core as mx
import numpy as np
from mlx.utils import tree_map

_gather_mm = mx.gather_mm


def _one_matmul_each(a: mx.array, b: mx.array, rhs_indices: mx.array, sorted_indices: bool = False) -> mx.array:
    rows = mx.broadcast_to(a, (*rhs_indices.shape, *a.shape[-2:])).reshape(-1, *a.shape[-2:])
    products = [row @ b[expert] for row, expert in zip(rows, rhs_indices.flatten().tolist(), strict=True)]
    return mx.stack(products).reshape(*rhs_indices.shape, a.shape[-2], b.shape[-1])


@contextlib.contextmanager
def one_matmul_each():
    mx.gather_mm = _one_matmul_each
    try:
        yield
    finally:
        mx.gather_mm = _gather_mm


def check(model, logits: typing.Callable[[], mx.array]) -> None:
    """Widens the model's weights and compares `logits` with and without the stand-in."""
    model.update(tree_map(lambda value: value.astype(mx.float32), model.parameters()))
    own = logits()
    with one_matmul_each():
        stood_in = logits()
    assert own.dtype == mx.float32 and np.array_equal(np.array(own), np.array(stood_in)), "one matmul an expert is another product"
