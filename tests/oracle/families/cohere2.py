"""Command R7B: sliding layers that turn, full layers that do not, f16 queries in f32."""

import numpy as np

from case import Case, config, table
from gguf_cases import BASE, K_M, GgufCase, Type

_COHERE2 = config(
    "cohere2",
    head_dim=16,
    num_hidden_layers=4,
    layer_norm_eps=1e-3,
    logit_scale=0.3,
    sliding_window=8,
    sliding_window_pattern=3,
)
_VARIANTS = {
    "cohere2": _COHERE2,
    # As newer files say it: types of layers instead of a period; mlx-lm's default period fits them.
    "cohere2-types": {key: value for key, value in _COHERE2.items() if key != "sliding_window_pattern"}
    | {
        "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
        "attention_bias": True,
        "layer_norm_bias": True,
        "rope_theta": 1e4,
    },
}


def checkpoints() -> list[Case]:
    # f16 alone widens the queries: scores in f16 would round otherwise.
    return table(
        _VARIANTS,
        [
            ("cohere2", ("float32", "bfloat16", "float16"), "dense"),
            ("cohere2-types", ("bfloat16",), "dense"),
            ("cohere2", ("bfloat16", "float16"), "q4"),
        ],
    )


_GGUF = {key: value for key, value in BASE.items() if key != "rms_norm_eps"} | {
    "model_type": "cohere2",
    "head_dim": 32,
    "layer_norm_eps": float(np.float32(1e-3)),
    "logit_scale": float(np.float32(0.3)),
    "rope_theta": 5e4,
    "sliding_window": 8,
    "num_hidden_layers": 4,
}


def gguf_files() -> list[GgufCase]:
    # No key holds the period of the full layers: it is 4.
    extra = {"logit_scale": 0.3, "rope.scaling.type": "none"}
    return [GgufCase("gguf-cohere2-q4_k_m", "cohere2", _GGUF, K_M | {"ffn_up": Type.Q5_K}, extra=extra)]
