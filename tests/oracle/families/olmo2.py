"""OLMo 2: norms behind the branches, q and k normalised over their whole width."""

from case import Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

# H * D and K * D differ, so that norms of the width of a head would not load.
_OLMO2 = config("olmo2", num_hidden_layers=3, head_dim=32, rope_theta=5e5)
_VARIANTS = {
    "olmo2": _OLMO2,
    "olmo2-untied": _OLMO2 | {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False},
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("olmo2", ("float32", "bfloat16"), "dense"),
            ("olmo2-untied", ("bfloat16",), "dense"),
            ("olmo2", ("bfloat16",), "q4"),
        ],
    )


STEMS = {"post_attention_layernorm": "post_attention_norm", "post_feedforward_layernorm": "post_ffw_norm"}


def gguf_files() -> list[GgufCase]:
    held = GGUF | {"model_type": "olmo2", "head_dim": 32, "rope_theta": 5e5, "tie_word_embeddings": False}
    return [GgufCase("gguf-olmo2-q4_k_m", "olmo2", held, K_M | {"output": Type.Q6_K}, stems=STEMS)]
