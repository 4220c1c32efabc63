"""Qwen3-Next: projections grouped by key head, experts in the layers that the config names. Dense experts of
bf16 and f16 are bounded."""

import mlx.core as mx

from case import ALL, Case, table
from families.qwen3_5 import _GGUF as _DENSE_GGUF, _HYBRID
from gguf_cases import K_M, GgufCase, Type
from hybrid_files import ValueHeads, gguf_metadata, parameter, raw_vectors, single_experts, tensor_name

_EXPERTS = {
    "model_type": "qwen3_next",
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 64,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [2],
    "norm_topk_prob": True,
    "num_hidden_layers": 4,
    "layer_types": ["linear_attention"] * 3 + ["full_attention"],
    "rope_theta": 1e7,
    "partial_rotary_factor": 0.25,
}
_NEXT = {key: value for key, value in (_HYBRID | _EXPERTS).items() if key != "rope_parameters"}
_VARIANTS = {
    "qwen3_next": _NEXT,
    # Keys that mlx-lm has a default for are left out.
    "qwen3_next-plain": {key: value for key, value in _NEXT.items() if key not in ("norm_topk_prob", "layer_types")}
    | {
        "num_experts_per_tok": 4,
        "decoder_sparse_step": 2,
        "mlp_only_layers": [],
        "tie_word_embeddings": False,
        "attention_bias": True,
        "rope_scaling": {"type": "linear", "factor": 3.0},
    },
}


def _raw(weights: dict) -> dict:
    return single_experts(raw_vectors(weights)) | {"mtp.fc.weight": mx.ones((4, 4))}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("qwen3_next", ("float32",), "dense", {"as_written": _raw, "converted": dict}),
            ("qwen3_next-plain", ("float32",), "dense"),
            ("qwen3_next", ("bfloat16", "float16"), "dense", {"bounded": True, "native": True}),
            ("qwen3_next", ALL, "q4"),
            ("qwen3_next-plain", ("bfloat16",), "q4"),
            ("qwen3_next", ("float16",), "q8"),
        ],
        parameter=parameter,
        float32=("A_log",),
        prompt=33,
    )


def gguf_files() -> list[GgufCase]:
    own = {key: value for key, value in _DENSE_GGUF.items() if key != "rope_parameters"}
    own |= {key: _EXPERTS[key] for key in ("model_type", "num_experts", "num_experts_per_tok", "decoder_sparse_step")}
    own |= {"moe_intermediate_size": 256, "shared_expert_intermediate_size": 256, "mlp_only_layers": []}
    own |= {"norm_topk_prob": True, "rope_theta": 1e7, "partial_rotary_factor": 0.25, "num_hidden_layers": 2}
    own = {key: value for key, value in own.items() if value is not None}
    heads = ValueHeads(own, False)
    # The older form of a file: both projections as mlx-lm holds them.
    return [
        GgufCase(
            "gguf-qwen3_next-q4_k_m",
            "qwen3next",
            own,
            K_M | {"ffn_gate_inp": Type.F32, "ffn_gate_inp_shexp": Type.F32},
            extra=gguf_metadata(own),
            tensor_name=tensor_name,
            both=heads.both,
            ordered=heads.ordered,
            prompt=33,
        )
    ]
