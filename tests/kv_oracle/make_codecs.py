"""Random keys, values and queries, and what mlx-lm, mlx-optiq and NumPy make of them.

    make_codecs.py OUTDIR

OUTDIR/cases.json lists the cases; the tensors of case NAME are NAME/q, NAME/k, NAME/v, NAME/keys.I, NAME/values.I and
NAME/out in OUTDIR/tensors.safetensors.
"""

import argparse
import itertools
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "oracle"))
import environment  # noqa: E402

VERSIONS = environment.require("mlx-optiq")

import mlx.core as mx  # noqa: E402
import numpy as np  # noqa: E402
from mlx_lm.models import base, cache  # noqa: E402

import turbo_numpy  # noqa: E402

SEED = 20261130
SCALE = 0.15  # no power of two, so that where it is multiplied shows
BITS, GROUPS = (2, 3, 4, 5, 6, 8), (32, 64, 128)
DTYPES = {"f32": mx.float32, "bf16": mx.bfloat16, "f16": mx.float16}
# queries, columns before them, heads, key heads, window: one query, a prompt, a later block, a block under a window.
SHAPES = [(1, 40, 4, 2, 0), (17, 0, 4, 4, 0), (6, 19, 6, 2, 0), (9, 7, 4, 1, 8)]


class Cases:
    def __init__(self):
        self.tensors, self.list = {}, []
        self.rng = np.random.default_rng(SEED)

    def inputs(self, shape: tuple, dim: int, dtype: mx.Dtype) -> tuple[mx.array, mx.array, mx.array]:
        queries, context, heads, kv_heads, _ = shape
        draw = lambda h, n: mx.array(self.rng.standard_normal((1, h, n, dim)).astype(np.float32)).astype(dtype)
        return draw(heads, queries), draw(kv_heads, context + queries), draw(kv_heads, context + queries)

    def add(self, name: str, kv: str, shape: tuple, planes: dict, **facts) -> None:
        mx.eval(planes)
        for key, value in planes.items():
            self.tensors[f"{name}/{key}"] = value
        queries, context, _, _, window = shape
        self.list.append(
            {"name": name, "kv": kv, "queries": queries, "context": context, "window": window, "scale": SCALE} | facts
        )


def mask_of(shape: tuple):
    """What mlx-lm's caches give for this span."""
    queries, context, _, _, window = shape
    if queries == 1:
        return None
    if window and context + queries > window:
        return base.create_causal_mask(queries, context, window_size=window)
    return "causal"


def named(prefix: str, arrays) -> dict:
    return {f"{prefix}.{i}": array for i, array in enumerate(arrays)}


def attention(q: mx.array, *rest) -> mx.array:
    """Over a copy: mlx-lm scales the queries that it is given in place."""
    q, keys, values, holder, *more = mx.array(q), *rest
    return base.scaled_dot_product_attention(q, keys, values, holder, SCALE, *more)


def quantized_planes(q, k, v, bits: int, group: int) -> tuple[dict, tuple, tuple]:
    keys = mx.quantize(k, group_size=group, bits=bits)
    values = mx.quantize(v, group_size=group, bits=bits)
    return {"q": q, "k": k, "v": v} | named("keys", keys) | named("values", values), keys, values


def mlx_lm_affine(cases: Cases) -> None:
    """mx.quantize, and scaled_dot_product_attention over a cache that has bits."""
    for bits, group, dtype in itertools.product(BITS, GROUPS, DTYPES):
        for i, shape in enumerate(SHAPES):
            q, k, v = cases.inputs(shape, 128, DTYPES[dtype])
            planes, keys, values = quantized_planes(q, k, v, bits, group)
            holder = cache.QuantizedKVCache(group_size=group, bits=bits)
            planes["out"] = attention(q, keys, values, holder, mask_of(shape))
            cases.add(f"mlx-lm-{bits}-{group}-{dtype}-{i}", f"affine:{bits}:{group}", shape, planes)


def optiq_affine(cases: Cases) -> None:
    """The same through what `optiq serve --kv-config` installs: tiles, sinks, and layers that borrow keys."""
    from optiq.runtime import fused_quant_sdpa
    from optiq.runtime.kv import patch_rotating_to_quantized

    patch_rotating_to_quantized()
    assert fused_quant_sdpa.install()
    shapes = SHAPES + [(1, 1300, 4, 2, 0), (40, 700, 4, 2, 0)]  # more than two tiles of 512
    for bits, dtype in itertools.product((4, 6, 8), DTYPES):
        for i, shape in enumerate(shapes):
            for kind in ("own", "borrowed", "sinks") if i < len(SHAPES) else ("own",):
                q, k, v = cases.inputs(shape, 64, DTYPES[dtype])
                planes, keys, values = quantized_planes(q, k, v, bits, 32)
                holder = cache.QuantizedKVCache(group_size=32, bits=bits) if kind != "borrowed" else None
                if kind == "sinks":
                    planes["sinks"] = mx.array(cases.rng.standard_normal(shape[2]).astype(np.float32)).astype(q.dtype)
                planes["out"] = attention(q, keys, values, holder, mask_of(shape), planes.get("sinks"))
                cases.add(
                    f"optiq-{bits}-{dtype}-{i}-{kind}",
                    f"affine:{bits}:32",
                    shape,
                    planes,
                    from_config=True,
                    reads_only=kind == "borrowed",
                )


def turbo_inputs(rng: np.random.Generator, dim: int) -> np.ndarray:
    """Ordinary positions, then groups that are 0, constant, tiny, narrow and far from 0, and one with an outlier."""
    x = rng.standard_normal((1, 2, 24, dim)).astype(np.float32) * np.float32(1.7)
    x[:, :, 1, :32] = 0
    x[:, :, 2, 32:64] = 0.5
    x[:, :, 3, :] = -3e-4
    x[:, :, 4, :32] = 40 + 1e-2 * x[:, :, 4, :32]
    x[:, :, 5, :32] *= 1e-6
    x[:, :, 6, 7] = 300
    x[:, :, 7, :] = 0
    return x


def turbo(cases: Cases) -> None:
    """Planes and what they decode to. Attention is composed from dense attention: no oracle has it."""
    for dim, key_bits, value_bits, parity, dtype in itertools.product(
        (64, 128, 256, 512), (2, 4, 5, 8), (2, 3, 4, 5, 8), (False, True), ("f32", "bf16")
    ):
        k, v = (mx.array(turbo_inputs(cases.rng, dim)).astype(DTYPES[dtype]) for _ in range(2))
        wide_k, wide_v = (np.array(x.astype(mx.float32)) for x in (k, v))
        keys = turbo_numpy.encode_keys(wide_k, key_bits, parity)
        values = turbo_numpy.encode_values(wide_v, value_bits)
        rotated, back = turbo_numpy.decode_values(values, value_bits)
        planes = {"k": k, "v": v} | named("keys", map(mx.array, keys)) | named("values", map(mx.array, values))
        planes["decoded_keys"] = mx.array(turbo_numpy.decode_keys(keys, key_bits, parity)).astype(DTYPES[dtype])
        planes["rotated_values"] = mx.array(rotated).astype(DTYPES[dtype])
        planes["decoded_values"] = mx.array(back).astype(DTYPES[dtype])
        kv = f"turbo:{key_bits}:{value_bits}" + (":parity" if parity else "")
        cases.add(f"turbo-{dim}-{key_bits}-{value_bits}-{int(parity)}-{dtype}", kv, (24, 0, 0, 0, 0), planes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("outdir", type=pathlib.Path)
    outdir = parser.parse_args().outdir
    mx.set_default_device(mx.cpu)
    outdir.mkdir(parents=True, exist_ok=True)
    cases = Cases()
    turbo(cases)
    mlx_lm_affine(cases)
    optiq_affine(cases)  # last: it changes mlx-lm
    mx.save_safetensors(str(outdir / "tensors.safetensors"), cases.tensors)
    (outdir / "cases.json").write_text(json.dumps({"versions": VERSIONS, "seed": SEED, "cases": cases.list}))
    print(f"{len(cases.list)} cases, seed {SEED}")


if __name__ == "__main__":
    main()
