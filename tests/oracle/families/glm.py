"""GLM: neighbouring pairs over the whole head, one matrix for gate and up, no bias on the output projection."""

from case import Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

# The oracle turns the whole head: a partial factor, which released files have, changes nothing.
_GLM = config("glm", head_dim=32, num_hidden_layers=3, partial_rotary_factor=0.5)
_VARIANTS = {
    "glm": _GLM,
    "glm-biased": _GLM | {"attention_bias": True, "tie_word_embeddings": False, "rope_theta": 5e5},
}
# One packed matrix with bits of its own, another left dense without a word in the config.
_MIXED = {
    "model.layers.0.mlp.gate_up_proj": {"bits": 8, "group_size": 64},
    "model.layers.1.mlp.gate_up_proj": None,
    "model.layers.2.mlp.down_proj": {"bits": 3, "group_size": 32},
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("glm", ("float32", "bfloat16"), "dense"),
            ("glm-biased", ("bfloat16",), "dense"),
            ("glm-biased", ("bfloat16",), "q4"),
            ("glm", ("bfloat16",), "mixed", {"mixed": _MIXED}),
        ],
    )


# The oracle knows no other part than all of a head; the converter writes half of it where the config says nothing, and
# llama.cpp turns what the file says. Neither is permuted.
_GGUF = GGUF | {"model_type": "glm", "head_dim": 32, "rope_theta": 1e4, "attention_bias": True, "num_hidden_layers": 2}
_STEMS = {"mlp.gate_up_proj": "ffn_up"}


def _packed(path: str) -> str | None:
    """Files of the ChatGLM names hold q, k and v in one tensor."""
    parts = path.split(".")
    return f"blk.{parts[2]}.attn_qkv.{parts[-1]}" if parts[-2] in ("q_proj", "k_proj", "v_proj") else None


def gguf_files() -> list[GgufCase]:
    untied = _GGUF | {"tie_word_embeddings": False}
    formats = K_M | {"output": Type.Q6_K, "ffn_up": Type.Q5_K}
    half = untied | {"partial_rotary_factor": 0.5}
    return [
        GgufCase("gguf-chatglm-q4_k_m", "chatglm", untied, formats, stems=_STEMS),
        GgufCase("gguf-chatglm-half-q4_k_m", "chatglm", half, formats, stems=_STEMS, rotated=16),
        GgufCase("gguf-chatglm-packed-q5", "chatglm", untied, {"*": Type.Q5_1}, stems=_STEMS, tensor_name=_packed),
    ]
