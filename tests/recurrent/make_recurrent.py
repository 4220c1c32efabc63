"""What mlx-lm's gated delta layer leaves behind pinned inputs, and the same in double precision.

    make_recurrent.py OUTDIR

OUTDIR/cases.json: {name, key_heads, value_heads, key_dim, value_dim, kernel, spans}. OUTDIR/expected.safetensors, by
NAME.: mixed, conv_weight, a, b, a_log, dt_bias; after span I: out.I, state.I, tail.I. OUTDIR/exact.safetensors, for the
f32 cases: out, state in double precision rounded to f32, and out_bound, state_bound, how far f32 arithmetic may be off.

The layer is qwen3_5.GatedDeltaNet as it stands: its projections hand over the inputs, its output norm and projection
pass the recurrence's output through.
"""

import json
import pathlib
import sys
import types
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "oracle"))
import environment  # noqa: E402

environment.require()

import mlx.core as mx  # noqa: E402
import numpy as np  # noqa: E402
from mlx_lm.models.cache import ArraysCache  # noqa: E402
from mlx_lm.models.qwen3_5 import GatedDeltaNet  # noqa: E402

from exact import exact_layer  # noqa: E402

SIZES = {
    "grouped": dict(key_heads=2, value_heads=4, key_dim=16, value_dim=8, kernel=4),
    "single": dict(key_heads=1, value_heads=1, key_dim=32, value_dim=16, kernel=2),
    "odd": dict(key_heads=1, value_heads=3, key_dim=20, value_dim=5, kernel=3),
    "real": dict(key_heads=1, value_heads=2, key_dim=128, value_dim=128, kernel=4),
}
SPANS = [[13], [7, 1, 1, 1, 3], [1] * 6, [2, 11]]
TOKENS = 13


def make_layer(sizes: dict, weights: dict, feed: dict) -> GatedDeltaNet:
    config = types.SimpleNamespace(
        hidden_size=8, linear_num_value_heads=sizes["value_heads"], linear_num_key_heads=sizes["key_heads"],
        linear_key_head_dim=sizes["key_dim"], linear_value_head_dim=sizes["value_dim"],
        linear_conv_kernel_dim=sizes["kernel"], rms_norm_eps=1e-6,
    )
    layer = GatedDeltaNet(config)
    layer.conv1d.weight = weights["conv_weight"][..., None]
    layer.A_log, layer.dt_bias = weights["a_log"], weights["dt_bias"]
    value = sizes["value_heads"] * sizes["value_dim"]
    layer.in_proj_qkv = lambda x: feed["mixed"]
    layer.in_proj_z = lambda x: mx.zeros(x.shape[:2] + (value,), x.dtype)
    layer.in_proj_a = lambda x: feed["a"]
    layer.in_proj_b = lambda x: feed["b"]
    layer.norm = lambda out, z: out
    layer.out_proj = lambda x: x
    return layer


def pinned(name: str, sizes: dict, dtype: mx.Dtype, float_gates: bool) -> dict:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    channels = 2 * sizes["key_heads"] * sizes["key_dim"] + sizes["value_heads"] * sizes["value_dim"]
    heads = sizes["value_heads"]
    normal = lambda *shape: mx.array(rng.standard_normal(shape).astype(np.float32))  # noqa: E731
    gates = mx.float32 if float_gates else dtype
    return {
        "mixed": normal(TOKENS, channels).astype(dtype),
        "conv_weight": (0.5 * normal(channels, sizes["kernel"])).astype(dtype),
        "a": normal(TOKENS, heads).astype(dtype),
        "b": (2 * normal(TOKENS, heads)).astype(dtype),
        "a_log": mx.log(mx.array(rng.uniform(0.05, 16, heads).astype(np.float32))).astype(gates),
        "dt_bias": normal(heads).astype(gates),
    }


def run(name: str, sizes: dict, inputs: dict, spans: list, tensors: dict) -> None:
    cache = ArraysCache(2)
    begin = 0
    for index, tokens in enumerate(spans):
        feed = {key: inputs[key][None, begin:begin + tokens] for key in ("mixed", "a", "b")}
        hidden = mx.zeros((1, tokens, 8), inputs["mixed"].dtype)
        out = make_layer(sizes, inputs, feed)(hidden, mask=None, cache=cache)
        mx.eval(out, cache[0], cache[1])
        tensors[f"{name}.out.{index}"] = out[0].reshape(tokens, sizes["value_heads"], sizes["value_dim"])
        tensors[f"{name}.tail.{index}"], tensors[f"{name}.state.{index}"] = cache[0][0], cache[1][0]
        begin += tokens


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    mx.set_default_device(mx.cpu)
    cases, tensors, exact = [], {}, {}
    for kind, sizes in SIZES.items():
        for dtype in ("float32", "bfloat16", "float16"):
            for float_gates in (False, True) if kind == "grouped" else (False,):
                base = f"{kind}-{dtype}-{'f32' if float_gates else 'model'}-gates"
                inputs = pinned(base, sizes, getattr(mx, dtype), float_gates)
                if dtype == "float32" and not float_gates:
                    for key, value in exact_layer(sizes, inputs).items():
                        exact[f"{base}-0.{key}"] = mx.array(value.astype(np.float32))
                for plan, spans in enumerate(SPANS):
                    name = f"{base}-{plan}"
                    tensors |= {f"{name}.{key}": value for key, value in inputs.items()}
                    run(name, sizes, inputs, spans, tensors)
                    cases.append({"name": name, "spans": spans} | sizes)
    mx.save_safetensors(str(folder / "expected.safetensors"), tensors)
    mx.save_safetensors(str(folder / "exact.safetensors"), exact)
    (folder / "cases.json").write_text(json.dumps(cases))


if __name__ == "__main__":
    main()
