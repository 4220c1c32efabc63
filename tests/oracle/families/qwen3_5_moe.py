"""Qwen3.5 of experts: every layer routed, with a shared expert. Dense experts of bf16 and f16 are bounded."""

import mlx.core as mx

from case import ALL, Case, table
from families.qwen3_5 import _GGUF as _DENSE_GGUF, _HYBRID
from gguf_cases import K_M, GgufCase, Type
from hybrid_files import ValueHeads, fused_experts, gguf_metadata, parameter, raw_vectors, tensor_name

_EXPERTS = {
    "model_type": "qwen3_5_moe",
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 64,
    "tie_word_embeddings": False,
    "num_hidden_layers": 4,
    "layer_types": ["linear_attention"] * 3 + ["full_attention"],
}
_MOE = {key: value for key, value in (_HYBRID | _EXPERTS).items() if key != "intermediate_size"}
_VARIANTS = {
    "qwen3_5_moe": _MOE,
    "qwen3_5_moe-plain": _MOE | {"num_experts_per_tok": 4, "norm_topk_prob": False, "tie_word_embeddings": True},
}


def _raw(weights: dict) -> dict:
    out = {}
    for name, value in fused_experts(raw_vectors(weights)).items():
        out[name.replace("language_model.model.", "model.language_model.").replace("language_model.lm", "lm")] = value
    return out | {"model.visual.patch.weight": mx.ones((4, 4))}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("qwen3_5_moe", ("float32",), "dense", {"as_written": _raw, "converted": dict}),
            ("qwen3_5_moe-plain", ("float32",), "dense"),
            ("qwen3_5_moe", ("bfloat16",), "dense", {"bounded": True, "native": True}),
            ("qwen3_5_moe-plain", ("float16",), "dense", {"bounded": True, "native": True}),
            ("qwen3_5_moe", ALL, "q4"),
            ("qwen3_5_moe-plain", ("bfloat16",), "q4"),
            ("qwen3_5_moe", ("bfloat16",), "q8"),
            ("qwen3_5_moe", ("bfloat16",), "mxfp4"),
        ],
        parameter=parameter,
        float32=("A_log",),
        prompt=33,
    )


def gguf_files() -> list[GgufCase]:
    own = _DENSE_GGUF | {key: _EXPERTS[key] for key in ("model_type", "num_experts", "num_experts_per_tok")}
    own |= {"moe_intermediate_size": 256, "shared_expert_intermediate_size": 256, "num_hidden_layers": 2}
    own = {key: value for key, value in own.items() if value is not None}
    heads = ValueHeads(own, True)

    def case(name: str, formats: dict, omitted: str = "") -> GgufCase:
        extra = {key: value for key, value in gguf_metadata(own).items() if key != omitted}
        return GgufCase(
            f"gguf-qwen3_5_moe-{name}",
            "qwen35moe",
            own,
            formats | {"ffn_gate_inp": Type.F32, "ffn_gate_inp_shexp": Type.F32},
            extra=extra,
            tensor_name=tensor_name,
            both=heads.both,
            ordered=heads.ordered,
            prompt=33,
        )

    return [
        case("q8_0", {"*": Type.Q8_0}, omitted="expert_shared_feed_forward_length"),
        case("q4_k_m", K_M | {"ffn_down_exps": Type.Q6_K}),
    ]
