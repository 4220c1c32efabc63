"""Gemma 3 text: sandwich norms by 1 + w, windows shorter than the prompt, two rotary bases, streams that leave f16."""

import numpy as np

from case import ALL, Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

# Hidden 192: its square root is rounded by the bf16 constant, which a power of four would hide.
_GEMMA = config(
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
SCALED = _GEMMA | {"rope_scaling": {"rope_type": "linear", "factor": 6.0}}
_VARIANTS = {
    "gemma3_text": SCALED,
    "gemma3_text-untied": _GEMMA,
}
# The graph multiplies embeddings by the root of the width.
OPTIONS = {"norm_centre": 0.0, "embedding_spread": 0.25 / np.sqrt(192)}
TIED = {"sanitize": True}


def checkpoints() -> list[Case]:
    cases = table(
        _VARIANTS,
        [
            ("gemma3_text", ALL, "dense", {"native": True, **TIED}),
            ("gemma3_text-untied", ("float32", "bfloat16"), "dense"),
            ("gemma3_text", ("bfloat16", "float16"), "q4", TIED),
            ("gemma3_text", ("float32",), "q8", TIED),
            ("gemma3_text", ("bfloat16",), "mixed", TIED),
            ("gemma3_text", ("float32",), "mxfp4", TIED),
        ],
        **OPTIONS,
    )
    loud = Case(
        "gemma3_text-loud-f16-dense",
        _VARIANTS["gemma3_text"],
        "float16",
        "dense",
        loud="model.layers.5.post_feedforward_layernorm.weight",
        **OPTIONS,
        **TIED,
    )
    return [*cases, loud]


# Hidden 512: its square root is rounded by the bf16 constant, which a hidden size of 256 would hide.
_GGUF = GGUF | {
    "model_type": "gemma3_text",
    "hidden_size": 512,
    "num_hidden_layers": 7,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "sliding_window": 8,
    "sliding_window_pattern": 3,
    "query_pre_attn_scalar": 64,
    "rope_theta": 1e6,
    "rope_local_base_freq": 1e4,
}
_STEMS = {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}


def _file(name: str, config: dict, formats: dict, extra: dict) -> GgufCase:
    return GgufCase(
        f"gguf-gemma3-{name}", "gemma3", config, formats, extra=extra, stems=_STEMS, norms_plus_one=True, sanitize=True
    )


def gguf_files() -> list[GgufCase]:
    linear = {"sliding_window_pattern": 6, "rope_scaling": {"type": "linear", "factor": 6.0}}
    return [
        _file("q4_k_m", _GGUF, K_M | {"ffn_gate": Type.Q5_0}, {"attention.sliding_window_pattern": 3}),
        # As most converters write it: no pattern key, which means every sixth layer is full; a linear factor.
        _file(
            "q8_0",
            _GGUF | linear,
            {"*": Type.Q8_0},
            {"rope.scaling.type": "linear", "rope.scaling.factor": 6.0},
        ),
    ]
