"""Helium: pairs of neighbours turn, and the attention's output has no bias whatever the flag says."""

from case import Case, config, table

# Four kv heads of 16: with half-split rotation every bit of q k^T would change.
_HELIUM = config(
    "helium",
    num_hidden_layers=3,
    head_dim=16,
    attention_bias=True,
    mlp_bias=False,
    rope_theta=1e5,
    tie_word_embeddings=False,
)
_VARIANTS = {
    "helium": _HELIUM,
    # Tied: mlx-lm keeps an lm_head beside the embedding and never reads it.
    "helium-tied": _HELIUM | {"attention_bias": False, "mlp_bias": True, "tie_word_embeddings": True},
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("helium", ("float32", "bfloat16"), "dense"),
            ("helium-tied", ("bfloat16",), "dense", {"silent": ("lm_head.weight",)}),
            ("helium", ("bfloat16",), "q4"),
        ],
    )
