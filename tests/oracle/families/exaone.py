"""EXAONE 3: llama under other names of tensors and keys."""

from case import Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

_EXAONE = {k: v for k, v in config("exaone").items() if k not in ("num_hidden_layers", "rms_norm_eps")} | {
    "num_layers": 3,
    "layer_norm_epsilon": 1e-5,
    "rope_theta": 5e5,
    "activation_function": "silu",
}
_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 6.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
_VARIANTS = {
    "exaone": _EXAONE | {"rope_scaling": _LLAMA3, "tie_word_embeddings": False},
    "exaone-biased": _EXAONE | {"attention_bias": True, "mlp_bias": True, "head_dim": 16},
}
# Names of the file's own, so that exceptions of single modules are renamed, too.
_MIXED = {
    "transformer.wte": {"bits": 8, "group_size": 32},
    "transformer.h.0.attn.attention.out_proj": {"bits": 6, "group_size": 32},
    "transformer.h.1.mlp.c_fc_0": {"bits": 8, "group_size": 64},
    "transformer.h.2.mlp.c_proj": False,
}


def _spread(path: str, shape: tuple, rng):
    return 0.25 * rng.standard_normal(shape) if "wte" in path else _norm(path, shape, rng)


def _norm(path: str, shape: tuple, rng):
    return 1 + 0.3 * rng.standard_normal(shape) if "ln_" in path else None


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("exaone", ("float32", "bfloat16"), "dense"),
            ("exaone-biased", ("bfloat16",), "dense"),
            ("exaone", ("bfloat16",), "q4"),
            ("exaone-biased", ("bfloat16",), "mixed", {"mixed": _MIXED}),
        ],
        parameter=_spread,
    )


def gguf_files() -> list[GgufCase]:
    # mlx-lm's exaone computes what its llama does; here its plain names hold the same values.
    held = GGUF | {"model_type": "llama", "head_dim": 32, "rope_theta": 5e5, "tie_word_embeddings": False}
    formats = K_M | {"output": Type.Q6_K}
    return [GgufCase("gguf-exaone-q4_k_m", "exaone", held, formats, rope_factors=True)]
