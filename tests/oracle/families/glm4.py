"""GLM-4 (0414): a norm before and behind each branch, neighbouring pairs over a part of each head."""

from case import Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

_GLM4 = config(
    "glm4",
    head_dim=32,
    num_hidden_layers=3,
    attention_bias=True,
    partial_rotary_factor=0.5,
    rope_theta=1e4,
    # Never tied, whatever a file says.
    tie_word_embeddings=False,
)
_VARIANTS = {
    "glm4": _GLM4,
    "glm4-halves": _GLM4
    | {"attention_bias": False, "rope_traditional": False, "partial_rotary_factor": 0.27, "num_hidden_layers": 2},
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("glm4", ("float32", "bfloat16"), "dense"),
            ("glm4-halves", ("bfloat16",), "dense"),
            ("glm4", ("bfloat16",), "q4"),
        ],
    )


_GGUF = GGUF | {
    "model_type": "glm4",
    "head_dim": 64,
    "rope_theta": 1e4,
    "attention_bias": True,
    "partial_rotary_factor": 0.5,
    "tie_word_embeddings": False,
    "num_hidden_layers": 2,
}
_STEMS = {
    "mlp.gate_up_proj": "ffn_up",
    "post_self_attn_layernorm": "post_attention_norm",
    "post_attention_layernorm": "ffn_norm",
    "post_mlp_layernorm": "post_ffw_norm",
}


def gguf_files() -> list[GgufCase]:
    formats = K_M | {"output": Type.Q6_K, "ffn_up": Type.Q5_K}
    return [GgufCase("gguf-glm4-q4_k_m", "glm4", _GGUF, formats, stems=_STEMS)]
