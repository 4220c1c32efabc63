"""Gemma 3 as its multimodal files hold it: the text decoder under language_model, image tensors beside it."""

import mlx.core as mx
import numpy as np

from case import Case, table

# Width and root as in gemma3_text. The outer vocab_size wins over the inner one; heads have defaults of their own here:
# 8 and 4, which the text config leaves out.
_TEXT = {
    "model_type": "gemma3_text",
    "hidden_size": 192,
    "head_dim": 16,
    "num_hidden_layers": 4,
    "intermediate_size": 128,
    "sliding_window": 8,
    "sliding_window_pattern": 3,
    "query_pre_attn_scalar": 48,
    "vocab_size": 80,
    "rope_scaling": {"rope_type": "linear", "factor": 6.0},
}
_VARIANTS = {"gemma3": {"model_type": "gemma3", "vocab_size": 96, "text_config": _TEXT, "vision_config": {}}}


def _as_written(weights: dict) -> dict:
    """As the authors' files: no head of its own, image tensors beside the decoder."""
    text = {name: value for name, value in weights.items() if not name.startswith("language_model.lm_head.")}
    return text | {
        "vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight": mx.zeros((8, 8)),
        "multi_modal_projector.mm_input_projection_weight": mx.zeros((8, 8)),
    }


# Paths of the file, with the prefix: a graph that looked them up under its own names would miss the exceptions.
_MIXED = {
    "language_model.model.layers.0.self_attn.v_proj": {"bits": 8, "group_size": 64},
    "language_model.model.layers.1.mlp.gate_proj": False,
    "language_model.model.layers.2.mlp.up_proj": {"bits": 3, "group_size": 32},
}


def checkpoints() -> list[Case]:
    tied = {"as_written": _as_written}
    return table(
        _VARIANTS,
        [
            ("gemma3", ("float32",), "dense"),
            ("gemma3", ("bfloat16",), "dense", tied),
            ("gemma3", ("bfloat16",), "mixed", {"mixed": _MIXED, **tied}),
        ],
        norm_centre=0.0,
        embedding_spread=0.25 / np.sqrt(192),
    )
