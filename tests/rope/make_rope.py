"""What mlx-lm's rope factory makes of every scaling type: rotated vectors for the C++ test to compare bit by bit.

    make_rope.py OUTDIR

OUTDIR/cases.json: {name, config, offset, dtype}; OUTDIR/expected.safetensors: name.x and name.y, [heads, tokens, dim].
"""

import json
import pathlib
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "oracle"))
import environment  # noqa: E402

environment.require()

import mlx.core as mx  # noqa: E402
import numpy as np  # noqa: E402
from mlx_lm.models.rope_utils import initialize_rope  # noqa: E402

HEADS, TOKENS, DIM = 3, 7, 16
LONG = {"long_factor": [1.0 + 0.37 * i for i in range(DIM // 2)], "short_factor": [1.0] * (DIM // 2)}
SCALINGS = {
    "default": None,
    "linear": {"type": "linear", "factor": 3.0},
    "dynamic": {"rope_type": "dynamic", "factor": 2.5},
    "llama3": {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 64},
    "llama3-bands": {
        "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.5, "high_freq_factor": 5.0,
        "original_max_position_embeddings": 100,
    },
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
    "yarn-defaults": {"type": "yarn", "factor": 40.0},
    "deepseek-yarn": {
        "type": "deepseek_yarn", "factor": 16.0, "original_max_position_embeddings": 128, "beta_fast": 20,
        "beta_slow": 2, "mscale": 0.7, "mscale_all_dim": 0.9,
    },
    "yarn-flat-ramp": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 7, "beta_fast": 1, "beta_slow": 1,
    },
    "yarn-small-factor": {"rope_type": "yarn", "factor": 0.5},
    "longrope": {"type": "longrope", "original_max_position_embeddings": 64} | LONG,
    "longrope-short": {"type": "longrope", "original_max_position_embeddings": 4096} | LONG,
    "proportional": {"rope_type": "proportional", "partial_rotary_factor": 0.5, "factor": 2.0},
    "mrope": {"rope_type": "mrope", "mrope_section": [2, 3, 3]},
}
MAX_POSITIONS = 256


def config_of(scaling: dict | None, base: float, traditional: bool) -> dict:
    config = {
        "model_type": "llama", "hidden_size": HEADS * DIM, "num_hidden_layers": 1, "intermediate_size": 8,
        "num_attention_heads": HEADS, "vocab_size": 8, "rms_norm_eps": 1e-6, "rope_theta": base,
        "rope_traditional": traditional, "max_position_embeddings": MAX_POSITIONS,
    }
    if scaling is not None:
        config["rope_scaling"] = scaling
        if "partial_rotary_factor" in scaling:
            config["partial_rotary_factor"] = scaling["partial_rotary_factor"]
    return config


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    mx.set_default_device(mx.cpu)
    cases, tensors = [], {}
    for kind, scaling in SCALINGS.items():
        for traditional in (False, True):
            if traditional and kind.startswith("longrope"):
                continue  # mlx-lm turns pairs of halves there whatever the config says
            for dtype in ("float32", "bfloat16", "float16"):
                for offset in (0, 1, 300):
                    base = 5e5 if kind.startswith("llama3") else 1e4
                    name = f"{kind}-{'traditional' if traditional else 'half'}-{dtype}-{offset}"
                    rng = np.random.default_rng(zlib.crc32(name.encode()))
                    x = mx.array(rng.standard_normal((1, HEADS, TOKENS, DIM)).astype(np.float32))
                    x = x.astype(getattr(mx, dtype))
                    rope = initialize_rope(DIM, base, traditional, scaling, MAX_POSITIONS)
                    tensors[f"{name}.x"], tensors[f"{name}.y"] = x[0], rope(x, offset=offset)[0]
                    cases.append({"name": name, "config": config_of(scaling, base, traditional), "offset": offset})
    mx.save_safetensors(str(folder / "expected.safetensors"), tensors)
    (folder / "cases.json").write_text(json.dumps(cases))


if __name__ == "__main__":
    main()
