"""Nemotron: layer norms by 1 + w, half of each head turned, the squared ReLU."""

import numpy as np

from case import Case, config, table
from gguf_cases import BASE, K_M, GgufCase, Type

_NEMOTRON = config("nemotron", num_hidden_layers=3, norm_eps=1e-3, hidden_act="relu2")
_VARIANTS = {
    "nemotron": _NEMOTRON,
    "nemotron-biased": _NEMOTRON
    | {
        "head_dim": 32,
        "attention_bias": True,
        "mlp_bias": True,
        "tie_word_embeddings": True,
        "partial_rotary_factor": 0.27,
        "rope_scaling": {"type": "linear", "factor": 3.0},
        "num_hidden_layers": 2,
    },
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("nemotron", ("float32", "bfloat16"), "dense"),
            ("nemotron-biased", ("bfloat16",), "dense"),
            ("nemotron", ("bfloat16",), "q4"),
        ],
        norm_centre=0.0,
    )


_GGUF = {key: value for key, value in BASE.items() if key != "rms_norm_eps"} | {
    "model_type": "nemotron",
    "hidden_act": "relu2",
    "norm_eps": float(np.float32(1e-3)),
    "partial_rotary_factor": 0.5,
    "rope_theta": 1e4,
    "tie_word_embeddings": False,
    "num_hidden_layers": 2,
}


def gguf_files() -> list[GgufCase]:
    formats = K_M | {"output": Type.Q6_K, "ffn_up": Type.Q5_K}
    return [GgufCase("gguf-nemotron-q4_k_m", "nemotron", _GGUF, formats, norms_plus_one=True)]
