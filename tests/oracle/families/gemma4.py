"""Gemma 4: inputs by layer and layers that share keys (E2B, E4B), keys that are values (12B), experts (26B-A4B).

Hidden 192 and inputs of 32: their square roots are no powers of two, so that it shows whether they are rounded first.
"""

import functools
import re

import mlx.core as mx
import numpy as np

from case import Case, config, table
from gguf_cases import BASE as GGUF, GgufCase, Type

FULL, SLIDING = "full_attention", "sliding_attention"
_ROPES = {
    FULL: {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25},
    SLIDING: {"rope_type": "default", "rope_theta": 1e4},
}
_BASE = {
    "hidden_size": 192,
    "head_dim": 32,
    "global_head_dim": 64,
    "sliding_window": 8,
    "final_logit_softcapping": 30.0,
    "rope_parameters": _ROPES,
    "intermediate_size": 64,
}
# As E2B: the last four layers share keys and have an MLP of twice the width.
_INPUTS = _BASE | {
    "num_hidden_layers": 10,
    "layer_types": [SLIDING, SLIDING, FULL] * 3 + [FULL],
    "num_kv_shared_layers": 4,
    "hidden_size_per_layer_input": 32,
    "vocab_size_per_layer_input": 104,
    "use_double_wide_mlp": True,
}
# As 12B.
_VALUES = _BASE | {
    "num_hidden_layers": 6,
    "layer_types": [SLIDING, SLIDING, FULL] * 2,
    "num_kv_shared_layers": 0,
    "hidden_size_per_layer_input": 0,
    "attention_k_eq_v": True,
    "num_global_key_value_heads": 1,
    "use_double_wide_mlp": False,
}
# As 26B-A4B.
_EXPERTS = _VALUES | {"enable_moe_block": True, "num_experts": 8, "top_k_experts": 2, "moe_intermediate_size": 32}


def _nested(model_type: str, text: dict) -> dict:
    text = config("gemma4_text", **text)
    vocabulary = text.pop("vocab_size")
    return {"model_type": model_type, "vocab_size": vocabulary, "text_config": text}


_VARIANTS = {
    "gemma4-inputs": config("gemma4_text", **_INPUTS),
    "gemma4-values": _nested("gemma4_unified", _VALUES),
    "gemma4-experts": _nested("gemma4", _EXPERTS),
    # Layer types by period, no width doubled, no soft cap, a head of its own.
    "gemma4-plain": config(
        "gemma4_text",
        **{key: value for key, value in _INPUTS.items() if key != "layer_types"}
        | {
            "sliding_window_pattern": 3,
            "num_hidden_layers": 6,
            "num_kv_shared_layers": 2,
            "use_double_wide_mlp": False,
            "final_logit_softcapping": None,
            "tie_word_embeddings": False,
        },
    ),
}


def _parameter(path: str, shape: tuple, rng: np.random.Generator) -> np.ndarray | None:
    noise = rng.standard_normal(shape)
    if path.endswith(("layer_scalar", "per_expert_scale")):
        return 1 + 0.2 * noise
    if path.endswith("router.scale"):  # scores wide enough that every expert is somebody's
        return np.sqrt(shape[0]) * (1 + 0.3 * noise)
    return None


def _mixed(prefix: str, layers: int) -> dict:
    module = f"{prefix}.layers"
    return {
        f"{prefix}.embed_tokens": {"bits": 8, "group_size": 64},
        f"{prefix}.embed_tokens_per_layer": {"bits": 2, "group_size": 32},
        f"{prefix}.per_layer_model_projection": False,
        f"{module}.0.self_attn.k_proj": {"bits": 8, "group_size": 64},
        f"{module}.0.mlp.down_proj": {"bits": 8, "group_size": 64},
        f"{module}.1.per_layer_input_gate": {"bits": 6, "group_size": 64},
        f"{module}.2.self_attn.q_proj": {"bits": 3, "group_size": 32},
        f"{module}.2.experts.switch_glu.up_proj": {"bits": 8, "group_size": 64},
        f"{module}.3.self_attn.o_proj": None,
        f"{module}.4.mlp.gate_proj": False,
        **{f"{module}.{i}.router.proj": {"bits": 8, "group_size": 64} for i in range(layers)},
    }


def _hugging_face(weights: dict, shared: range) -> dict:
    """The names of the original checkpoint, with what a text model leaves out."""
    out = {}
    for path, value in weights.items():
        name = "model." + path.replace("language_model.model.", "language_model.")
        if "switch_glu.up_proj" in name:
            continue
        if "switch_glu.gate_proj" in name:
            up = weights[path.replace("gate_proj", "up_proj")]
            name, value = name.replace("switch_glu.gate_proj.weight", "gate_up_proj"), mx.concatenate([value, up], -2)
        out[name.replace("switch_glu.down_proj.weight", "down_proj")] = value
    text = "model.language_model.layers"
    stray = [f"{text}.{i}.self_attn.{part}.weight" for i in shared for part in ("k_proj", "v_proj", "k_norm")]
    stray += [f"{text}.0.self_attn.q_proj.{end}" for end in ("input_max", "input_min", "output_max", "output_min")]
    stray += ["model.vision_tower.encoder.layers.0.mlp.up_proj.linear.weight", "model.audio_tower.layers.0.norm.weight"]
    stray += ["model.embed_vision.embedding_projection.weight", "model.embed_audio.embedding_projection.weight"]
    stray += ["model.vision_embedder.patch.weight", "model.multi_modal_projector.weight"]
    return out | {name: mx.full((3, 5), 7.0) for name in stray}


def checkpoints() -> list[Case]:
    experts = {"prompt": 33}  # with two experts a token, 64 choices: they run sorted
    options = {"embedding_spread": 0.25 / np.sqrt(192), "parameter": _parameter}
    cases = table(
        _VARIANTS,
        [
            ("gemma4-inputs", ("float32", "bfloat16"), "dense"),
            ("gemma4-inputs", ("bfloat16",), "q4"),
            ("gemma4-inputs", ("float32",), "mixed", {"mixed": _mixed("model", 10)}),
            ("gemma4-values", ("float32", "bfloat16", "float16"), "dense"),
            ("gemma4-values", ("bfloat16",), "q4"),
            ("gemma4-values", ("bfloat16",), "mixed", {"mixed": _mixed("language_model.model", 6)}),
            ("gemma4-experts", ("float32",), "dense", experts),
            ("gemma4-experts", ("bfloat16", "float16"), "dense", experts | {"bounded": True}),
            ("gemma4-experts", ("bfloat16",), "q4", experts),
            ("gemma4-experts", ("bfloat16",), "mixed", experts | {"mixed": _mixed("language_model.model", 6)}),
            ("gemma4-plain", ("bfloat16",), "dense"),
        ],
        **options,
    )
    original = [
        ("inputs", _nested("gemma4", _INPUTS), "bfloat16", {}, range(6, 10)),
        ("experts", _VARIANTS["gemma4-experts"], "float32", experts, range(0)),
    ]
    return cases + [
        Case(f"gemma4-{name}-original-dense", own, dtype, "dense", **options, **more,
             as_written=functools.partial(_hugging_face, shared=shared))
        for name, own, dtype, more, shared in original
    ]  # fmt: skip


# Columns of the table of inputs: 8 layers of 32, one block of a K format.
_GGUF_INPUTS = _INPUTS | {
    "num_hidden_layers": 8,
    "layer_types": [SLIDING, SLIDING, FULL] * 2 + [SLIDING, FULL],
    "num_kv_shared_layers": 3,
    "vocab_size_per_layer_input": 96,
}
_STEMS = {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
    "pre_feedforward_layernorm_2": "pre_ffw_norm_2",
    "post_feedforward_layernorm_1": "post_ffw_norm_1",
    "post_feedforward_layernorm_2": "post_ffw_norm_2",
    "per_layer_input_gate": "inp_gate",
    "per_layer_projection": "proj",
    "post_per_layer_input_norm": "post_norm",
    "router.proj": "ffn_gate_inp",
    "experts.switch_glu.gate_proj": "ffn_gate_up_exps",
    "experts.switch_glu.up_proj": "ffn_gate_up_exps",
    "experts.switch_glu.down_proj": "ffn_down_exps",
}
_TOP = {
    "model.embed_tokens_per_layer.weight": "per_layer_token_embd.weight",
    "model.per_layer_model_projection.weight": "per_layer_model_proj.weight",
    "model.per_layer_projection_norm.weight": "per_layer_proj_norm.weight",
}
_LEAVES = {
    "layer_scalar": "layer_output_scale.weight",
    "router.scale": "ffn_gate_inp.scale",
    "router.per_expert_scale": "ffn_down_exps.scale",
}


def _tensor_name(path: str) -> str | None:
    if path in _TOP:
        return _TOP[path]
    layer = re.fullmatch(r"model\.layers\.(\d+)\.(.+)", path)
    if layer and layer[2] in _LEAVES:
        return f"blk.{layer[1]}.{_LEAVES[layer[2]]}"
    return None


def _gguf(name: str, text: dict, formats: dict, **options) -> GgufCase:
    text = GGUF | {"model_type": "gemma4_text", "num_attention_heads": 4, "num_key_value_heads": 2} | text
    text |= {"hidden_size": 256, "rope_theta": 1e6}  # the latter for the metadata alone
    layers, types = text["num_hidden_layers"], text["layer_types"]
    owners = layers - text["num_kv_shared_layers"]
    double = 2 if text["use_double_wide_mlp"] else 1
    extra = {
        "attention.key_length": 64,
        "attention.value_length": 64,
        "attention.key_length_swa": 32,
        "attention.value_length_swa": 32,
        "attention.sliding_window_pattern": [kind == SLIDING for kind in types],
        "attention.shared_kv_layers": layers - owners,
        "embedding_length_per_layer_input": text["hidden_size_per_layer_input"],
        "feed_forward_length": [64 * (1 if i < owners else double) for i in range(layers)],
        "final_logit_softcapping": 30.0,
        "rope.dimension_count": 64,
        "rope.dimension_count_swa": 32,
        "rope.freq_base_swa": 1e4,
    }
    if text.get("attention_k_eq_v"):
        extra["attention.head_count_kv"] = [2 if kind == SLIDING else 1 for kind in types]
    if text.get("enable_moe_block"):
        extra |= {"expert_count": 8, "expert_used_count": 2, "expert_feed_forward_length": 32}
    factors = [1.0] * 8 + [1e30] * 24  # a quarter of the pairs of a head of 64 turns
    return GgufCase(
        f"gguf-gemma4-{name}",
        "gemma4",
        text,
        formats,
        extra=extra,
        stems=_STEMS,
        tensor_name=_tensor_name,
        vector=_parameter,
        tensors={"rope_freqs.weight": factors},
        **options,
    )


def gguf_files() -> list[GgufCase]:
    small = {"*": Type.Q8_0, "attn_v": Type.Q5_0, "ffn_up": Type.Q4_0}
    return [
        _gguf("inputs", _GGUF_INPUTS, small | {"per_layer_token_embd": Type.Q6_K, "token_embd": Type.Q6_K}),
        _gguf("experts", _EXPERTS, small | {"ffn_gate_inp": Type.F32, "ffn_gate_up_exps": Type.Q4_0}, prompt=33),
    ]
