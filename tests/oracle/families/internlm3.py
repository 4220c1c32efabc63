"""InternLM3: one flag for the biases of the attention, one for those of the MLP; dynamic rotation."""

from case import Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

_INTERNLM3 = config("internlm3", num_hidden_layers=3, rope_theta=5e6)
_VARIANTS = {
    # Positions go past the 16 of the config: the base then follows the length.
    "internlm3": _INTERNLM3
    | {
        "qkv_bias": True,
        "bias": True,
        "max_position_embeddings": 16,
        "rope_scaling": {"rope_type": "dynamic", "factor": 6.0},
    },
    "internlm3-plain": _INTERNLM3 | {"rope_scaling": {"rope_type": "linear", "factor": 3.0}},
    "internlm3-tied": _INTERNLM3 | {"qkv_bias": True, "tie_word_embeddings": True},
}
# The engine does not generate past max_position_embeddings, mlx-lm does: stay inside.
_SHORT = {"greedy_prompt": 4, "greedy_tokens": 12}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("internlm3", ("float32", "bfloat16"), "dense", _SHORT),
            ("internlm3-plain", ("bfloat16",), "dense"),
            ("internlm3-tied", ("float32",), "dense"),
            ("internlm3-plain", ("bfloat16",), "q4"),
        ],
    )


def gguf_files() -> list[GgufCase]:
    # The converter writes llama files: without biases, as released, nothing tells the two apart.
    held = GGUF | {"model_type": "internlm3", "rope_theta": 5e6, "tie_word_embeddings": False}
    formats = K_M | {"output": Type.Q6_K}
    return [GgufCase("gguf-internlm3-as-llama-q4_k_m", "llama", held, formats, permuted=True)]
