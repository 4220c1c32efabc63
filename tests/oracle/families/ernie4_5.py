"""ERNIE 4.5: pairs of neighbours turn, one flag for all biases."""

from case import Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

_ERNIE = config(
    "ernie4_5", num_hidden_layers=3, head_dim=32, rope_theta=5e5, use_bias=False, tie_word_embeddings=True
)
_VARIANTS = {
    "ernie4_5": _ERNIE,
    "ernie4_5-biased": _ERNIE | {"use_bias": True, "tie_word_embeddings": False, "head_dim": None},
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("ernie4_5", ("float32", "bfloat16"), "dense"),
            ("ernie4_5-biased", ("bfloat16",), "dense"),
            ("ernie4_5", ("bfloat16",), "q4"),
        ],
    )


def gguf_files() -> list[GgufCase]:
    # The checkpoint turns neighbours itself, so converters leave the rows of q and k where they are.
    held = GGUF | {"model_type": "ernie4_5", "head_dim": 64, "rope_theta": 5e5, "use_bias": False}
    return [GgufCase("gguf-ernie4_5-q4_k_m", "ernie4_5", held, K_M | {"ffn_up": Type.Q5_1})]
