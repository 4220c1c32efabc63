"""Qwen2: biases on q, k and v alone."""

from case import ALL, Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

_VARIANTS = {
    "qwen2": config("qwen2", rope_theta=1e6, tie_word_embeddings=True),
    "qwen2-untied": config("qwen2", tie_word_embeddings=False),
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("qwen2", ALL, "dense", {"native": True}),
            ("qwen2-untied", ("float32",), "dense"),
            ("qwen2", ("bfloat16",), "q4"),
            ("qwen2", ("float16",), "q8"),
            ("qwen2", ("bfloat16",), "mixed"),
        ],
    )


_GGUF = GGUF | {"model_type": "qwen2", "rope_theta": 1e6}


def gguf_files() -> list[GgufCase]:
    return [
        GgufCase("gguf-qwen2-q5", "qwen2", _GGUF, {"*": Type.Q5_0, "attn_v": Type.Q5_1, "ffn_down": Type.Q8_0}),
        GgufCase("gguf-qwen2-q4_k_m", "qwen2", _GGUF | {"tie_word_embeddings": False}, K_M | {"output": Type.Q8_0}),
    ]
