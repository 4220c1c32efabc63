"""Ministral 3: queries that grow with their position, everything about rotation in rope_parameters."""

from case import Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

# Prompts and steps pass position 16, so that the gain takes the values 1, 1 + beta ln 2 and 1 + beta ln 3; formed in
# bf16 and not in f32 it would be another one. A beta of 0.1 would hide much of it in bf16.
_PARAMETERS = {
    "rope_type": "yarn",
    "rope_theta": 1e6,
    "factor": 12.0,
    "original_max_position_embeddings": 16,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.35,
}
_MINISTRAL = config("ministral3", num_hidden_layers=3, head_dim=32, rope_parameters=_PARAMETERS)
_SLIDING = {
    "layer_types": ["full_attention", "sliding_attention", "full_attention"],
    "sliding_window": 8,
    "tie_word_embeddings": False,
    "rope_parameters": _PARAMETERS | {"mscale_all_dim": 0.0},
}
_DEFAULT = {
    "rope_type": "default",
    "rope_theta": 1e5,
    "original_max_position_embeddings": 5,
    "llama_4_scaling_beta": 0.35,
}
_VARIANTS = {
    "ministral3": _MINISTRAL,
    "ministral3-sliding": _MINISTRAL | _SLIDING,
    "ministral3-default": _MINISTRAL | {"num_hidden_layers": 2, "rope_parameters": _DEFAULT},
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("ministral3", ("float32", "bfloat16", "float16"), "dense"),
            ("ministral3-sliding", ("bfloat16",), "dense"),
            ("ministral3-default", ("bfloat16",), "dense"),
            ("ministral3", ("bfloat16",), "q4"),
        ],
    )


def gguf_files() -> list[GgufCase]:
    # In the file's f32: 0.35 read back from it is not the double.
    held = GGUF | {
        "model_type": "ministral3",
        "head_dim": 32,
        "rope_theta": 1e6,
        "rope_parameters": _PARAMETERS | {"llama_4_scaling_beta": 0.375},
        "tie_word_embeddings": False,
    }
    extra = {
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 12.0,
        "rope.scaling.original_context_length": 16,
        "rope.scaling.yarn_beta_fast": 32.0,
        "rope.scaling.yarn_beta_slow": 1.0,
        "rope.scaling.yarn_log_multiplier": 1.0,
        "attention.temperature_scale": 0.375,
    }
    formats = K_M | {"output": Type.Q6_K}
    return [GgufCase("gguf-ministral3-q4_k_m", "mistral3", held, formats, extra=extra, permuted=True)]
