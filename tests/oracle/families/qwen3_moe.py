"""Qwen3-MoE: experts in some layers, the router's softmax and choice, weights renormalized or not.

Dense experts of bf16 and f16 are bounded: MLX gathers no dense matrices but of f32 on CPU. 33 tokens of 2 experts are 66 indices, from 64 on
tokens go sorted; 4 experts make the order of their sum count.
"""

import functools

from case import ALL, Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type
from hybrid_files import expert_metadata, single_experts, tensor_name

_MOE = config(
    "qwen3_moe",
    head_dim=32,
    tie_word_embeddings=True,
    rope_theta=1e6,
    num_experts=8,
    num_experts_per_tok=2,
    moe_intermediate_size=64,
    decoder_sparse_step=2,
    mlp_only_layers=[3],
    norm_topk_prob=True,
)
_VARIANTS = {
    "qwen3_moe": _MOE,
    # mlx-lm ignores rope_scaling here.
    "qwen3_moe-plain": _MOE
    | {
        "num_experts_per_tok": 4,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "norm_topk_prob": False,
        "tie_word_embeddings": False,
        "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
    },
}
_MIXED = {
    "model.embed_tokens": {"bits": 8, "group_size": 64},
    "model.layers.1.mlp.gate": False,
    "model.layers.1.mlp.switch_mlp.gate_proj": {"bits": 3, "group_size": 64},
    "model.layers.1.mlp.switch_mlp.up_proj": {"bits": 4, "group_size": 32, "mode": "mxfp4"},
    "model.layers.1.mlp.switch_mlp.down_proj": {"bits": 8, "group_size": 32},
    "model.layers.2.self_attn.q_proj": {"bits": 6, "group_size": 32},
    "model.layers.3.mlp.up_proj": False,
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("qwen3_moe", ("float32",), "dense", {"as_written": single_experts, "converted": dict}),
            ("qwen3_moe-plain", ("float32",), "dense"),
            ("qwen3_moe", ("bfloat16", "float16"), "dense", {"bounded": True, "native": True, "as_written": single_experts}),
            ("qwen3_moe-plain", ("bfloat16",), "dense", {"bounded": True, "native": True}),
            ("qwen3_moe", ALL, "q4"),
            ("qwen3_moe-plain", ("bfloat16",), "q4"),
            ("qwen3_moe", ("bfloat16",), "q8"),
            ("qwen3_moe", ("bfloat16", "float32"), "mixed", {"mixed": _MIXED}),
            ("qwen3_moe", ("float16",), "mxfp4"),
            ("qwen3_moe", ("bfloat16",), "mxfp8"),
            ("qwen3_moe", ("float32",), "nvfp4"),
        ],
        prompt=33,
    )


# Files hold neither norm_topk_prob nor the layers without experts: weights are renormalized, every layer has experts.
_GGUF = GGUF | _MOE | {
    **GGUF,
    "head_dim": 64,
    "rope_theta": 1e6,
    "moe_intermediate_size": 256,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}


def gguf_files() -> list[GgufCase]:
    def case(name: str, formats: dict, **changes) -> GgufCase:
        return GgufCase(
            f"gguf-qwen3_moe-{name}",
            "qwen3moe",
            _GGUF | changes,
            formats,
            extra=expert_metadata(_GGUF | changes),
            tensor_name=functools.partial(tensor_name, second_norm="ffn_norm"),
            prompt=33,
        )

    return [
        case("f32", {"*": Type.F32}, tie_word_embeddings=False),
        case("bf16", {"*": Type.BF16, "ffn_gate_inp": Type.F32}),
        case("q4_k_m", K_M | {"ffn_gate_inp": Type.F32, "ffn_down_exps": Type.Q6_K}, num_experts_per_tok=3),
        case("q5", {"*": Type.Q8_0, "ffn_gate_exps": Type.Q5_0, "ffn_up_exps": Type.MXFP4, "ffn_down_exps": Type.Q5_1}),
    ]
