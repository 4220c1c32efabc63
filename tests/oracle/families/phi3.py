"""Phi-3: packed q, k, v and gate, up; rotation of a part of each head, by factors of each pair."""

from case import Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

_PHI3 = config("phi3", num_hidden_layers=3)


def _factors(kind: str, pairs: int) -> dict:
    return {"type": kind, "short_factor": [1.0] * pairs, "long_factor": [1.0 + 0.2 * i for i in range(pairs)]}


# The long factors serve every length, and their gain stands on all of the stream's bits: sqrt(1 + ln 8 / ln 64).
_VARIANTS = {
    "phi3": _PHI3 | {"rope_scaling": _factors("longrope", 8), "original_max_position_embeddings": 64},
    # Phi-4-mini's form: three quarters of each head turn, a tied head, queries in groups of one.
    "phi3-su": _PHI3
    | {
        "rope_scaling": _factors("su", 6),
        "original_max_position_embeddings": 64,
        "partial_rotary_factor": 0.75,
        "tie_word_embeddings": True,
        "num_key_value_heads": 4,
        "num_hidden_layers": 2,
    },
    # The oracle wants long factors with every type. A window in the file is not applied.
    "phi3-linear": _PHI3
    | {
        "rope_scaling": {"type": "linear", "factor": 3.0, "long_factor": []},
        "partial_rotary_factor": 0.5,
        "sliding_window": 8,
        "num_hidden_layers": 2,
    },
    # Lengths that the oracle has defaults for: a stretch of 32 over 4096.
    "phi3-defaults": {
        key: value
        for key, value in _PHI3.items()
        if key not in ("max_position_embeddings", "num_key_value_heads")
    }
    | {"rope_scaling": _factors("longrope", 8), "num_hidden_layers": 2},
}
# Packed matrices are quantized as one and split behind the product.
_MIXED = {
    "model.layers.0.self_attn.qkv_proj": {"bits": 8, "group_size": 64},
    "model.layers.1.self_attn.qkv_proj": False,
    "model.layers.1.mlp.gate_up_proj": {"bits": 5, "group_size": 32},
    "model.layers.2.mlp.gate_up_proj": None,
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("phi3", ("float32", "bfloat16"), "dense"),
            ("phi3-su", ("bfloat16",), "dense"),
            ("phi3-linear", ("bfloat16",), "dense"),
            ("phi3-defaults", ("bfloat16",), "dense"),
            ("phi3", ("bfloat16",), "q4"),
            ("phi3", ("bfloat16",), "mixed", {"mixed": _MIXED}),
        ],
    )


_GGUF = GGUF | {"model_type": "phi3", "rope_theta": 1e4, "tie_word_embeddings": False, "num_hidden_layers": 2}
_STEMS = {"self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up"}


def gguf_files() -> list[GgufCase]:
    # Three quarters of a head of 32 turn: 12 pairs. Factors that f32 holds exactly.
    factors = {"long_factor": [1 + 0.25 * i for i in range(12)], "short_factor": [1.0] * 12}
    longrope = _GGUF | {
        "partial_rotary_factor": 0.75,
        "original_max_position_embeddings": 64,
        "rope_scaling": {"type": "longrope", **factors},
    }
    tensors = {f"rope_factors_{kind}.weight": factors[f"{kind}_factor"] for kind in ("long", "short")}
    formats = K_M | {"attn_qkv": Type.Q5_K, "output": Type.Q6_K}
    return [
        GgufCase(
            "gguf-phi3-longrope",
            "phi3",
            longrope,
            formats,
            # Phi-4 writes a window of 0.
            extra={
                "rope.scaling.original_context_length": 64,
                "rope.scaling.attn_factor": 1.22,
                "attention.sliding_window": 0,
            },
            stems=_STEMS,
            tensors=tensors,
        ),
        GgufCase("gguf-phi3-q8_0", "phi3", _GGUF, {"*": Type.Q8_0}, stems=_STEMS),
    ]
