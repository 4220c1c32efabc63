"""OLMo 3: three of four layers slide, and only the full ones turn by yarn."""

from case import Case, config, table
from families.olmo2 import STEMS
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

_OLMO3 = config("olmo3", num_hidden_layers=5, head_dim=32, sliding_window=8, rope_theta=5e5)
# A factor that is no power of two: q and k each grow by 0.1 ln 6 + 1, on full layers only.
_YARN = {"rope_type": "yarn", "factor": 6.0, "original_max_position_embeddings": 64, "beta_fast": 32, "beta_slow": 1}
_LISTED = ["full_attention", "sliding_attention", "full_attention"]
_VARIANTS = {
    "olmo3": _OLMO3 | {"rope_scaling": _YARN},
    "olmo3-listed": _OLMO3
    | {"num_hidden_layers": 3, "layer_types": _LISTED, "attention_bias": True, "tie_word_embeddings": True},
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("olmo3", ("float32", "bfloat16"), "dense"),
            ("olmo3-listed", ("bfloat16",), "dense"),
            ("olmo3", ("bfloat16",), "q4"),
        ],
    )


def gguf_files() -> list[GgufCase]:
    # The files call themselves olmo2; their windows tell them apart.
    yarn = {"rope_type": "yarn", "factor": 6.0, "original_max_position_embeddings": 64}
    held = GGUF | {
        "model_type": "olmo3",
        "num_hidden_layers": 4,
        "head_dim": 32,
        "rope_theta": 5e5,
        "sliding_window": 8,
        "layer_types": ["sliding_attention"] * 2 + ["full_attention", "sliding_attention"],
        "rope_scaling": yarn,
        "tie_word_embeddings": False,
    }
    extra = {
        "attention.sliding_window_pattern": [True, True, False, True],
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 6.0,
        "rope.scaling.original_context_length": 64,
    }
    formats = K_M | {"output": Type.Q6_K}
    return [GgufCase("gguf-olmo3-q4_k_m", "olmo2", held, formats, extra=extra, stems=STEMS)]
