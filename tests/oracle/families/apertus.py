"""Apertus: an MLP without a gate whose xIELU learns its slopes, norms on each head of q and k."""

import numpy as np

from case import Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 6.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
_APERTUS = config(
    "apertus",
    num_hidden_layers=3,
    mlp_bias=False,
    attention_bias=False,
    rope_theta=1e6,
    post_norm=False,
    qk_norm=True,
    tie_word_embeddings=False,
    hidden_act="xielu",
)
_VARIANTS = {
    "apertus": _APERTUS | {"rope_scaling": _LLAMA3},
    "apertus-biased": _APERTUS | {"mlp_bias": True, "rope_traditional": True, "tie_word_embeddings": True},
}


def scalar(path: str, rng: np.random.Generator) -> float:
    """Another slope in each layer. eps is -1e-6 in released models: there no value would lie between it and 0."""
    name = path.rpartition(".")[2]
    return {"beta": 0.45, "eps": -0.3}.get(name, 0.0) + 0.1 * rng.standard_normal()


def _parameter(path: str, shape: tuple, rng: np.random.Generator):
    return np.array(scalar(path, rng)) if "act_fn" in path else None


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("apertus", ("float32", "bfloat16", "float16"), "dense"),
            ("apertus-biased", ("bfloat16",), "dense"),
            ("apertus", ("bfloat16",), "q4"),
        ],
        parameter=_parameter,
    )


def gguf_files() -> list[GgufCase]:
    held = GGUF | {
        "model_type": "apertus",
        "rope_theta": 1e6,
        "mlp_bias": False,
        "attention_bias": False,
        "post_norm": False,
        "qk_norm": True,
        "tie_word_embeddings": False,
    }
    stems = {"attention_layernorm": "attn_norm", "feedforward_layernorm": "ffn_norm"}
    formats = K_M | {"output": Type.Q6_K}
    return [GgufCase("gguf-apertus-q4_k_m", "apertus", held, formats, stems=stems, scalar=scalar, scalars="xielu")]
