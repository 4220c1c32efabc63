"""Gemma 2: soft caps on scores and logits, sandwich norms, a score scale of its own, windows that nobody applies."""

import numpy as np

from case import Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

# Hidden 96: its root is rounded by the dtype that it meets. The query scalar differs from the head size. Caps are no
# powers of two and small enough to bend what they cap. The oracle reads every layer in full, whatever the window.
_GEMMA2 = config(
    "gemma2",
    hidden_size=96,
    head_dim=32,
    num_hidden_layers=3,
    query_pre_attn_scalar=48,
    attn_logit_softcapping=5.0,
    final_logit_softcapping=3.0,
    sliding_window=8,
    layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    hidden_activation="gelu_pytorch_tanh",
)
_WITH_DEFAULTS = ("query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping")
_VARIANTS = {
    "gemma2": _GEMMA2,
    # One query head per key head: products of four dimensions instead of five.
    "gemma2-ungrouped": _GEMMA2 | {"num_key_value_heads": 4},
    # As 27B: the scalar is hidden_size / heads and neither the head size nor a power of two.
    "gemma2-27b": _GEMMA2 | {"hidden_size": 144, "num_attention_heads": 4, "query_pre_attn_scalar": 36, "layer_types": None},
    "gemma2-defaults": {key: value for key, value in _GEMMA2.items() if key not in _WITH_DEFAULTS},
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("gemma2", ("float32", "bfloat16", "float16"), "dense"),
            ("gemma2-ungrouped", ("bfloat16",), "dense"),
            ("gemma2-27b", ("float32", "bfloat16"), "dense"),
            ("gemma2-defaults", ("bfloat16",), "dense"),
            ("gemma2", ("bfloat16",), "q4"),
        ],
        norm_centre=0.0,
        embedding_spread=0.25 / np.sqrt(96),
    )


_STEMS = {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
# The converter stores no query scalar: the head size is meant.
_GGUF = GGUF | {
    "model_type": "gemma2",
    "hidden_size": 512,
    "head_dim": 64,
    "query_pre_attn_scalar": 64,
    "attn_logit_softcapping": 5.0,
    "final_logit_softcapping": 3.0,
    "sliding_window": 8,
    "rope_theta": 1e4,
    "num_hidden_layers": 2,
}


def gguf_files() -> list[GgufCase]:
    caps = {"attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0}
    formats = K_M | {"ffn_up": Type.Q5_K, "attn_output": Type.Q4_0}
    return [GgufCase("gguf-gemma2-q4_k_m", "gemma2", _GGUF, formats, extra=caps, stems=_STEMS, norms_plus_one=True)]
