"""MiMo: biases on q, k and v alone, untied by default, no head_dim."""

from case import Case, config, table

_MIMO = config("mimo", num_hidden_layers=3, rope_theta=64e4)
_VARIANTS = {
    "mimo": _MIMO,
    "mimo-tied": _MIMO | {"tie_word_embeddings": True, "rope_traditional": True},
}


def _with_predictors(weights: dict) -> dict:
    """Released files carry layers that predict further tokens; the oracle leaves them out, and so must we."""
    return weights | {"model.mtp_layers.0.input_layernorm.weight": weights["model.norm.weight"]}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("mimo", ("float32", "bfloat16"), "dense"),
            ("mimo-tied", ("bfloat16",), "dense", {"as_written": _with_predictors}),
            ("mimo", ("bfloat16",), "q4"),
        ],
    )
