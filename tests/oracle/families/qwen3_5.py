"""Qwen3.5 dense: gated delta layers and gated attention; more value heads than key heads, values of another size."""

import mlx.core as mx

from case import ALL, Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type
from hybrid_files import ValueHeads, gguf_metadata, parameter, raw_vectors, tensor_name

_HYBRID = config(
    "qwen3_5",
    num_hidden_layers=8,
    head_dim=32,
    linear_num_value_heads=4,
    linear_num_key_heads=2,
    linear_key_head_dim=32,
    linear_value_head_dim=16,
    linear_conv_kernel_dim=4,
    full_attention_interval=4,
    tie_word_embeddings=True,
    rope_parameters={
        "type": "default",
        "rope_theta": 1e7,
        "partial_rotary_factor": 0.25,
        "mrope_section": [2, 1, 1],
        "mrope_interleaved": True,
    },
    layer_types=(["linear_attention"] * 3 + ["full_attention"]) * 2,
)
_VARIANTS = {
    "qwen3_5": _HYBRID,
    # As multimodal releases nest it, with biases, another interval and three value heads a key head.
    "qwen3_5-nested": {
        "model_type": "qwen3_5",
        "text_config": _HYBRID
        | {
            "model_type": "qwen3_5_text",
            "num_hidden_layers": 5,
            "full_attention_interval": 3,
            "layer_types": ["linear_attention", "linear_attention", "full_attention"] * 2,
            "linear_num_value_heads": 6,
            "linear_key_head_dim": 16,
            "attention_bias": True,
            "tie_word_embeddings": False,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "partial_rotary_factor": 0.5},
        },
    },
}
_IN = "language_model.model.layers"
_MIXED = {
    "language_model.model.embed_tokens": {"bits": 8, "group_size": 64},
    f"{_IN}.0.linear_attn.in_proj_qkv": {"bits": 6, "group_size": 32},
    f"{_IN}.0.linear_attn.in_proj_a": False,
    f"{_IN}.1.linear_attn.in_proj_b": {"bits": 8, "group_size": 64},
    f"{_IN}.1.linear_attn.out_proj": {"bits": 3, "group_size": 64},
    f"{_IN}.2.linear_attn.in_proj_z": None,
    f"{_IN}.3.self_attn.q_proj": {"bits": 8, "group_size": 32},
    f"{_IN}.3.self_attn.o_proj": {"bits": 4, "group_size": 32, "mode": "mxfp4"},
    f"{_IN}.4.mlp.down_proj": False,
}


def _head(prefix: str, shift: float, dtype: mx.Dtype) -> dict:
    """The multi-token head, which mlx-lm drops: random, but audited."""
    hidden, inner, q, kv = 64, 128, 4 * 32, 2 * 32
    shapes = {
        "fc.weight": (hidden, 2 * hidden),
        "layers.0.self_attn.q_proj.weight": (2 * q, hidden),
        "layers.0.self_attn.k_proj.weight": (kv, hidden),
        "layers.0.self_attn.v_proj.weight": (kv, hidden),
        "layers.0.self_attn.o_proj.weight": (hidden, q),
        "layers.0.mlp.gate_proj.weight": (inner, hidden),
        "layers.0.mlp.up_proj.weight": (inner, hidden),
        "layers.0.mlp.down_proj.weight": (hidden, inner),
    }
    norms = {"pre_fc_norm_embedding": 64, "pre_fc_norm_hidden": 64, "norm": 64, "layers.0.input_layernorm": 64}
    norms |= {"layers.0.post_attention_layernorm": 64, "layers.0.self_attn.q_norm": 32, "layers.0.self_attn.k_norm": 32}
    head = {f"{prefix}mtp.{name}": mx.random.normal(shape, key=mx.random.key(3)) for name, shape in shapes.items()}
    head |= {f"{prefix}mtp.{name}.weight": mx.full((dims,), shift) for name, dims in norms.items()}
    return {name: value.astype(dtype) for name, value in head.items()}


def _dtype(weights: dict) -> mx.Dtype:
    return weights["language_model.model.norm.weight"].dtype


def _raw(weights: dict) -> dict:
    """Hugging Face's multimodal file: other prefixes, a vision tower, the multi-token head."""
    out = {}
    for name, value in raw_vectors(weights).items():
        out[name.replace("language_model.model.", "model.language_model.").replace("language_model.lm", "lm")] = value
    return out | {"model.visual.patch.weight": mx.ones((4, 4))} | _head("", 0.0, _dtype(weights))


def _converted(weights: dict) -> dict:
    """A converted repository that kept the head: nothing is shifted a second time."""
    return weights | _head("language_model.", 1.0, _dtype(weights))


_RAW = {"as_written": _raw, "converted": _converted}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("qwen3_5", ("float32",), "dense", _RAW),
            ("qwen3_5", ("bfloat16", "float16"), "dense", _RAW | {"native": True}),
            ("qwen3_5-nested", ("float32", "bfloat16"), "dense"),
            ("qwen3_5", ALL, "q4"),
            ("qwen3_5-nested", ("bfloat16",), "q4"),
            ("qwen3_5", ("bfloat16",), "q8"),
            ("qwen3_5", ("bfloat16", "float32"), "mixed", {"mixed": _MIXED}),
            ("qwen3_5", ("float16",), "mxfp4"),
        ],
        parameter=parameter,
        float32=("A_log",),
    )


_GGUF = _HYBRID | {
    **GGUF,
    "num_hidden_layers": 4,
    "layer_types": None,
    "full_attention_interval": 2,
    "head_dim": 64,
    "linear_value_head_dim": 64,
}


def gguf_files() -> list[GgufCase]:
    def case(name: str, formats: dict, tiled: bool = True, dense: tuple = (), **changes) -> GgufCase:
        own = {key: value for key, value in (_GGUF | changes).items() if value is not None}
        heads = ValueHeads(own, tiled)
        extra = gguf_metadata(own) | ({} if tiled else {"ssm.v_head_reordered": False})
        return GgufCase(
            f"gguf-qwen3_5-{name}",
            "qwen35",
            own,
            formats,
            extra=extra,
            tensor_name=tensor_name,
            both=heads.both,
            ordered=heads.ordered,
            dense=dense,
        )

    return [
        case("f32", {"*": Type.F32}, linear_num_value_heads=6, tie_word_embeddings=False),
        case("grouped-f16", {"*": Type.F16}, tiled=False),
        case("q4_k_m", K_M),
        # The columns of a format without an MLX layout become dense before they move.
        case("q6_k", {"*": Type.Q8_0, "ssm_out": Type.Q6_K, "attn_qkv": Type.Q5_K, "ssm_alpha": Type.F32}),
        # Heads of 16 cut the groups of 32.
        case("narrow", {"*": Type.Q8_0, "ssm_out": Type.Q5_1}, dense=("ssm_out",), linear_value_head_dim=16),
    ]
