"""The table of tiny checkpoints: family variants x element type x weight format.

Not the full product: every (family, dtype) and every weight format occurs, and every branch of a graph is alive in at
least one case of each dtype in which its rounding differs.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    family: str
    config: dict
    dtype: str  # float32 | bfloat16 | float16: the element type of the checkpoint
    weights: str  # dense | q4 | q8 | mixed | inferred | mxfp4 | mxfp8 | nvfp4
    sharded: bool = False
    greedy_prompt: int = 21  # tokens; more than 2048 exercises the chunk plan
    greedy_tokens: int = 32
    loud: str = ""  # a parameter made 60,000 times larger, so that the residual stream leaves f16's range

    @property
    def group(self) -> str:
        """One C++ test runs one group, so that a failure names what broke."""
        return f"{self.family}_{self.weights}"


_BASE = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 96,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
}


def _config(model_type: str, **changes) -> dict:
    return {"model_type": model_type, **_BASE, **changes}


_LLAMA = _config("llama", head_dim=32, tie_word_embeddings=False, rope_theta=5e6)
_SLIDING = {"layer_types": ["sliding_attention", "full_attention"] * 2, "sliding_window": 8}
# Hidden 192: its square root is rounded by the bf16 constant, which a power of four would hide.
_GEMMA = _config(
    "gemma3_text",
    hidden_size=192,
    head_dim=32,
    num_hidden_layers=7,
    sliding_window=8,
    sliding_window_pattern=3,
    query_pre_attn_scalar=48,
    rope_theta=1e6,
    rope_local_base_freq=1e4,
)


def _scaled(**scaling) -> dict:
    return _LLAMA | {"rope_scaling": scaling}


# Scaling factors are no powers of two: those would make different roundings equal.
VARIANTS = {
    "llama": _LLAMA,
    "llama-biased": _LLAMA
    | {
        "attention_bias": True,
        "mlp_bias": True,
        "tie_word_embeddings": True,
        "rope_scaling": {"type": "linear", "factor": 3.0},
    },
    "llama-sliding": _LLAMA | _SLIDING,
    "llama-traditional": _LLAMA | {"rope_traditional": True, "num_key_value_heads": 4},
    # Keys that mlx-lm has a default for are left out.
    "llama-defaults": {k: v for k, v in _LLAMA.items() if k not in ("head_dim", "rope_theta", "tie_word_embeddings")},
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
    "llama-long": _LLAMA
    | _SLIDING
    | {
        "num_hidden_layers": 2,
        "layer_types": ["sliding_attention", "full_attention"],
        "max_position_embeddings": 4096,
    },
    "mistral": _LLAMA | {"model_type": "mistral"},
    "qwen2": _config("qwen2", rope_theta=1e6, tie_word_embeddings=True),
    "qwen2-untied": _config("qwen2", tie_word_embeddings=False),
    "qwen3": _config("qwen3", head_dim=32, rope_theta=1e6, tie_word_embeddings=True),
    "qwen3-nested-rope": _config(
        "qwen3", head_dim=32, tie_word_embeddings=False, rope_parameters={"rope_theta": 5e5, "rope_type": "default"}
    ),
    "gemma3_text": _GEMMA | {"rope_scaling": {"rope_type": "linear", "factor": 6.0}},
    "gemma3_text-untied": _GEMMA,
}

_ALL = ("float32", "bfloat16", "float16")
_TABLE = [
    # variant, dtypes, weights
    ("llama", _ALL, "dense"),
    ("llama-biased", ("float32", "bfloat16"), "dense"),
    ("llama-sliding", _ALL, "dense"),
    ("llama-traditional", ("float32", "bfloat16"), "dense"),
    ("llama-defaults", ("float16",), "dense"),
    ("llama-llama3", ("float32", "bfloat16"), "dense"),
    ("llama-yarn", _ALL, "dense"),
    ("llama-yarn-mscale", ("bfloat16",), "dense"),
    ("llama-dynamic", ("float32", "bfloat16"), "dense"),
    ("mistral", ("bfloat16",), "dense"),
    ("qwen2", _ALL, "dense"),
    ("qwen2-untied", ("float32",), "dense"),
    ("qwen3", _ALL, "dense"),
    ("qwen3-nested-rope", ("bfloat16",), "dense"),
    ("gemma3_text", _ALL, "dense"),
    ("gemma3_text-untied", ("float32", "bfloat16"), "dense"),
    ("llama", _ALL, "q4"),
    ("qwen2", ("bfloat16",), "q4"),
    ("qwen3", ("float16",), "q4"),
    ("gemma3_text", ("bfloat16", "float16"), "q4"),
    ("llama-biased", ("bfloat16",), "q8"),
    ("qwen2", ("float16",), "q8"),
    ("qwen3", ("float32",), "q8"),
    ("gemma3_text", ("float32",), "q8"),
    ("llama", _ALL, "mixed"),
    ("qwen2", ("bfloat16",), "mixed"),
    ("qwen3", ("bfloat16",), "mixed"),
    ("gemma3_text", ("bfloat16",), "mixed"),
    ("llama", ("bfloat16",), "inferred"),
    ("llama", ("bfloat16",), "mxfp4"),
    ("qwen3", ("float16",), "mxfp4"),
    ("gemma3_text", ("float32",), "mxfp4"),
    ("qwen3", ("bfloat16",), "mxfp8"),
    ("llama-biased", ("bfloat16",), "nvfp4"),
]


def all_cases() -> list[Case]:
    short = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}
    cases = []
    for variant, dtypes, weights in _TABLE:
        family = variant.split("-")[0].replace("mistral", "llama")
        for dtype in dtypes:
            name = f"{variant}-{short[dtype]}-{weights}"
            # The engine does not generate past max_position_embeddings, mlx-lm does: stay inside.
            room = {"greedy_prompt": 4, "greedy_tokens": 12} if variant == "llama-dynamic" else {}
            cases.append(Case(name, family, VARIANTS[variant], dtype, weights, **room))
    cases.append(Case("llama-sharded-f32-dense", "llama", VARIANTS["llama"], "float32", "dense", sharded=True))
    cases.append(Case("qwen3-sharded-bf16-q4", "qwen3", VARIANTS["qwen3"], "bfloat16", "q4", sharded=True))
    cases.append(
        Case(
            "gemma3_text-loud-f16-dense",
            "gemma3_text",
            VARIANTS["gemma3_text"],
            "float16",
            "dense",
            loud="model.layers.5.post_feedforward_layernorm.weight",
        )
    )
    cases.append(
        Case("llama-long-f32-dense", "llama", VARIANTS["llama-long"], "float32", "dense", greedy_prompt=2060)
    )
    return cases
