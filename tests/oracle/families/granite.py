"""Granite 3: four multipliers, of which the one on the logits divides."""

from case import Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

# None of them a power of two: a product with an inverse, or a constant in f32 beside bf16, gives other bits then.
_MULTIPLIERS = {
    "embedding_multiplier": 12.0,
    "residual_multiplier": 0.83,
    "logits_scaling": 3.0,
    "attention_multiplier": 0.085,
}
_GRANITE = config("granite", num_hidden_layers=3, rope_theta=1e4, attention_bias=False, mlp_bias=False) | _MULTIPLIERS
_VARIANTS = {
    "granite": _GRANITE,
    "granite-untied": _GRANITE | {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False},
}
# The graph multiplies embeddings by 12.
_OPTIONS = {"embedding_spread": 0.04}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("granite", ("float32", "bfloat16", "float16"), "dense"),
            ("granite-untied", ("bfloat16",), "dense"),
            # mlx-lm keeps o_proj, down_proj and lm_head at 8 bits.
            ("granite-untied", ("bfloat16",), "q4"),
        ],
        **_OPTIONS,
    )


def gguf_files() -> list[GgufCase]:
    # Values that f32 holds exactly, since the file has no others.
    multipliers = {
        "embedding_multiplier": 12.0,
        "residual_multiplier": 0.21875,
        "logits_scaling": 6.0,
        "attention_multiplier": 0.0859375,
    }
    flags = {"attention_bias": False, "mlp_bias": False}
    held = GGUF | {"model_type": "granite", "rope_theta": 1e4, "tie_word_embeddings": False} | multipliers | flags
    extra = {
        "attention.scale": multipliers["attention_multiplier"],
        "embedding_scale": multipliers["embedding_multiplier"],
        "residual_scale": multipliers["residual_multiplier"],
        "logit_scale": multipliers["logits_scaling"],
    }
    formats = K_M | {"output": Type.Q6_K}
    return [GgufCase("gguf-granite-q4_k_m", "granite", held, formats, extra=extra, permuted=True)]
