"""Llama and its aliases: biases, windows, traditional rotary and every rope scaling."""

from case import ALL, Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

LLAMA = config("llama", head_dim=32, tie_word_embeddings=False, rope_theta=5e6)
_SLIDING = {"layer_types": ["sliding_attention", "full_attention"] * 2, "sliding_window": 8}


def _scaled(**scaling) -> dict:
    return LLAMA | {"rope_scaling": scaling}


# Scaling factors are no powers of two: those would make different roundings equal.
_VARIANTS = {
    "llama": LLAMA,
    "llama-biased": LLAMA
    | {
        "attention_bias": True,
        "mlp_bias": True,
        "tie_word_embeddings": True,
        "rope_scaling": {"type": "linear", "factor": 3.0},
    },
    "llama-sliding": LLAMA | _SLIDING,
    "llama-traditional": LLAMA | {"rope_traditional": True, "num_key_value_heads": 4},
    # Keys that mlx-lm has a default for are left out.
    "llama-defaults": {k: v for k, v in LLAMA.items() if k not in ("head_dim", "rope_theta", "tie_word_embeddings")},
    "llama-llama3": _scaled(
        rope_type="llama3", factor=6.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64
    ),
    "llama-yarn": _scaled(rope_type="yarn", factor=5.0, original_max_position_embeddings=64),
    "llama-yarn-mscale": _scaled(
        rope_type="yarn",
        factor=5.0,
        original_max_position_embeddings=64,
        beta_fast=16,
        beta_slow=2,
        mscale=0.7,
        mscale_all_dim=1.0,
    ),
    "llama-dynamic": _scaled(type="dynamic", factor=2.5) | {"max_position_embeddings": 16},
    "llama-long": LLAMA
    | _SLIDING
    | {
        "num_hidden_layers": 2,
        "layer_types": ["sliding_attention", "full_attention"],
        "max_position_embeddings": 4096,
    },
    "llama-wide": LLAMA | {"hidden_size": 128, "intermediate_size": 256},
    "mistral": LLAMA | {"model_type": "mistral"},
    # A window that no layer_types names applies to no layer.
    "mistral-window": LLAMA | {"model_type": "mistral", "sliding_window": 8},
    "mistral-sliding": LLAMA | _SLIDING | {"model_type": "mistral"},
}
# The engine does not generate past max_position_embeddings, mlx-lm does: stay inside.
_SHORT = {"greedy_prompt": 4, "greedy_tokens": 12}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("llama", ALL, "dense", {"native": True}),
            ("llama-biased", ("float32", "bfloat16"), "dense"),
            ("llama-sliding", ALL, "dense"),
            ("llama-traditional", ("float32", "bfloat16"), "dense"),
            ("llama-defaults", ("float16",), "dense"),
            ("llama-llama3", ("float32", "bfloat16"), "dense"),
            ("llama-yarn", ALL, "dense"),
            ("llama-yarn-mscale", ("bfloat16",), "dense"),
            ("llama-dynamic", ("float32", "bfloat16"), "dense", _SHORT),
            ("mistral", ("bfloat16",), "dense"),
            ("mistral-window", ("bfloat16",), "dense"),
            ("mistral-sliding", ("bfloat16",), "dense"),
            ("llama", ALL, "q4"),
            ("llama-biased", ("bfloat16",), "q8"),
            ("llama-wide", ALL, "groups"),
            ("llama-wide", ALL, "widths"),
            ("llama", ALL, "mixed"),
            ("llama", ("bfloat16",), "inferred"),
            ("llama", ("bfloat16",), "mxfp4"),
            ("llama-biased", ("bfloat16",), "nvfp4"),
            ("llama-long", ("float32",), "dense", {"greedy_prompt": 2060}),
        ],
    ) + [Case("llama-sharded-f32-dense", LLAMA, "float32", "dense", sharded=True)]


_GGUF = GGUF | {"model_type": "llama", "head_dim": 64, "rope_theta": 5e5}


def gguf_files() -> list[GgufCase]:
    untied = _GGUF | {"tie_word_embeddings": False}

    def case(name: str, config: dict, formats: dict, **options) -> GgufCase:
        return GgufCase(f"gguf-llama-{name}", "llama", config, formats, permuted=True, **options)

    return [
        case("f32", untied, {"*": Type.F32}),
        case("f16", _GGUF, {"*": Type.F16}),
        case("bf16", _GGUF, {"*": Type.BF16}),
        case("q4_0", _GGUF, {"*": Type.Q4_0}),
        case("q4_1", _GGUF, {"*": Type.Q4_1, "token_embd": Type.Q8_0}),
        case("q4_k_m", untied, K_M | {"output": Type.Q6_K}),
        case("rope-factors", _GGUF, {"*": Type.Q8_0}, rope_factors=True),
    ]
