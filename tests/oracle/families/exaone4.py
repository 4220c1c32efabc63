"""EXAONE 4: letters say which layers slide and rotate; norms behind the branches and on each head of q and k."""

from case import Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 12.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
_EXAONE4 = config(
    "exaone4",
    num_hidden_layers=5,
    head_dim=32,
    rope_theta=1e6,
    rope_scaling=_LLAMA3,
    tie_word_embeddings=False,
)
_VARIANTS = {
    "exaone4": _EXAONE4 | {"sliding_window": 8, "sliding_window_pattern": "LLLG"},
    # No letters: all layers rotate and see everything.
    "exaone4-full": _EXAONE4
    | {
        "num_hidden_layers": 2,
        "sliding_window": None,
        "sliding_window_pattern": None,
        "rope_scaling": None,
        "tie_word_embeddings": True,
    },
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("exaone4", ("float32", "bfloat16"), "dense"),
            ("exaone4-full", ("bfloat16",), "dense"),
            ("exaone4", ("bfloat16",), "q4"),
        ],
    )


_STEMS = {"post_attention_layernorm": "post_attention_norm", "post_feedforward_layernorm": "post_ffw_norm"}


def gguf_files() -> list[GgufCase]:
    held = GGUF | {
        "model_type": "exaone4",
        "num_hidden_layers": 4,
        "head_dim": 32,
        "rope_theta": 1e6,
        "rope_scaling": None,
        "tie_word_embeddings": False,
    }
    sliding = held | {"sliding_window": 8, "sliding_window_pattern": "LLG"}
    full = held | {"num_hidden_layers": 2, "sliding_window_pattern": None}
    extra = {"attention.sliding_window_pattern": [True, True, False, True]}
    formats = K_M | {"output": Type.Q6_K}
    return [
        GgufCase("gguf-exaone4-q4_k_m", "exaone4", sliding, formats, extra=extra, stems=_STEMS),
        GgufCase("gguf-exaone4-full-q8_0", "exaone4", full | {"sliding_window": None}, {"*": Type.Q8_0}, stems=_STEMS),
    ]
