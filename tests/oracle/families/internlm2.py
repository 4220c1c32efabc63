"""InternLM2: one matrix for q, k and v by key heads, names of its own."""

from case import Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

# Two queries per key head: the order of the groups matters.
_INTERNLM2 = config("internlm2", num_hidden_layers=3, rope_theta=1e6)
_VARIANTS = {
    "internlm2": _INTERNLM2 | {"bias": False, "rope_scaling": {"type": "linear", "factor": 3.0}},
    # Both keys at their defaults: biased and untied.
    "internlm2-biased": _INTERNLM2 | {"rope_scaling": {"type": "dynamic", "factor": 2.5}},
    "internlm2-tied": _INTERNLM2 | {"tie_word_embeddings": True},
}
# A packed matrix is quantized as one and taken apart behind the product.
_MIXED = {
    "model.tok_embeddings": {"bits": 8, "group_size": 64},
    "model.layers.0.attention.wqkv": {"bits": 6, "group_size": 64},
    "model.layers.1.attention.wqkv": False,
    "model.layers.1.feed_forward.w2": {"bits": 8, "group_size": 32},
    "output": {"bits": 8, "group_size": 32},
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("internlm2", ("float32", "bfloat16"), "dense"),
            ("internlm2-biased", ("bfloat16",), "dense"),
            ("internlm2-tied", ("bfloat16",), "dense"),
            ("internlm2-biased", ("bfloat16",), "q4"),
            ("internlm2", ("bfloat16",), "mixed", {"mixed": _MIXED}),
        ],
    )


def gguf_files() -> list[GgufCase]:
    # Converters take wqkv apart, which leaves llama's tensors.
    held = GGUF | {"model_type": "llama", "rope_theta": 1e6, "tie_word_embeddings": False}
    return [GgufCase("gguf-internlm2-q4_k_m", "internlm2", held, K_M | {"output": Type.Q6_K}, permuted=True)]
