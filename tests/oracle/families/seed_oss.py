"""Seed-OSS: biases of q, k and v apart from that of the output."""

from case import Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

_SEED = config("seed_oss", head_dim=32, num_hidden_layers=3, attention_bias=True, tie_word_embeddings=False)
_VARIANTS = {
    "seed_oss": _SEED,
    # Tied: in the oracle a plain product with the embedding, which quantized it cannot form.
    "seed_oss-tied": {k: v for k, v in _SEED.items() if k != "tie_word_embeddings"}
    | {"rope_scaling": {"rope_type": "linear", "factor": 3.0}},
    "seed_oss-output-bias": _SEED | {"attention_bias": False, "attention_out_bias": True, "mlp_bias": True},
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("seed_oss", ("float32", "bfloat16"), "dense"),
            ("seed_oss-tied", ("bfloat16",), "dense"),
            ("seed_oss-output-bias", ("bfloat16",), "dense"),
            ("seed_oss", ("bfloat16",), "q4"),
        ],
    )


def gguf_files() -> list[GgufCase]:
    held = GGUF | {
        "model_type": "seed_oss",
        "head_dim": 64,
        "rope_theta": 1e6,
        "attention_bias": True,
        "tie_word_embeddings": False,
    }
    stems = {"post_attention_layernorm": "post_attention_norm"}
    return [GgufCase("gguf-seed_oss-q4_k_m", "seed_oss", held, K_M | {"output": Type.Q8_0}, stems=stems)]
