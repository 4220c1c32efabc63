"""Qwen3: a norm on each head of q and k."""

from case import ALL, Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

_VARIANTS = {
    "qwen3": config("qwen3", head_dim=32, rope_theta=1e6, tie_word_embeddings=True),
    "qwen3-nested-rope": config(
        "qwen3", head_dim=32, tie_word_embeddings=False, rope_parameters={"rope_theta": 5e5, "rope_type": "default"}
    ),
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("qwen3", ALL, "dense", {"native": True}),
            ("qwen3-nested-rope", ("bfloat16",), "dense"),
            ("qwen3", ("float16",), "q4"),
            ("qwen3", ("float32",), "q8"),
            ("qwen3", ("bfloat16",), "mixed"),
            ("qwen3", ("float16",), "mxfp4"),
            ("qwen3", ("bfloat16",), "mxfp8"),
        ],
    ) + [Case("qwen3-sharded-bf16-q4", _VARIANTS["qwen3"], "bfloat16", "q4", sharded=True)]


_GGUF = GGUF | {"model_type": "qwen3", "head_dim": 64, "rope_theta": 1e6}
_RARE = {
    "*": Type.Q3_K,
    "attn_q": Type.Q2_K,
    "attn_k": Type.IQ4_NL,
    "attn_v": Type.IQ4_XS,
    "ffn_up": Type.MXFP4,
    "token_embd": Type.Q5_K,
}


def gguf_files() -> list[GgufCase]:
    return [
        GgufCase("gguf-qwen3-q5_k_m", "qwen3", _GGUF, {"*": Type.Q5_K, "attn_v": Type.Q6_K, "token_embd": Type.Q6_K}),
        GgufCase("gguf-qwen3-q4_k_m", "qwen3", _GGUF, K_M),
        GgufCase("gguf-qwen3-rare", "qwen3", _GGUF, _RARE),
    ]
