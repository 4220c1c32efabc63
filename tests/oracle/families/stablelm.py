"""StableLM 2: scores in f32, norms for each head of q and k, branches in sequence or side by side."""

import numpy as np

from case import Case, config, table
from gguf_cases import BASE, K_M, GgufCase, Type

_STABLELM = config(
    "stablelm",
    num_hidden_layers=3,
    layer_norm_eps=1e-3,
    rope_theta=1e4,
    partial_rotary_factor=0.25,
    use_qkv_bias=True,
    tie_word_embeddings=False,
)
_VARIANTS = {
    "stablelm": _STABLELM,
    # The form of the 12B release: x + attention + MLP, in this order, and a weight for each head of q and k.
    "stablelm-parallel": _STABLELM | {"use_qkv_bias": False, "use_parallel_residual": True, "qk_layernorm": True},
}


def checkpoints() -> list[Case]:
    # bf16 and f16 queries and keys meet the scores in f32: a graph that keeps them would round each score.
    return table(
        _VARIANTS,
        [
            ("stablelm", ("float32", "bfloat16", "float16"), "dense"),
            ("stablelm-parallel", ("float32", "bfloat16"), "dense"),
            ("stablelm-parallel", ("bfloat16",), "q4"),
        ],
    )


_GGUF = {key: value for key, value in BASE.items() if key != "rms_norm_eps"} | {
    "model_type": "stablelm",
    "layer_norm_eps": float(np.float32(1e-3)),
    "partial_rotary_factor": 0.25,
    "rope_theta": 1e4,
    "use_qkv_bias": True,
    "tie_word_embeddings": False,
    "num_hidden_layers": 2,
}


def _stacked(path: str) -> str | None:
    """The norms of single heads become the rows of one tensor."""
    if ".norms." not in path:
        return None
    parts = path.split(".")
    return f"blk.{parts[2]}.attn_{parts[4][0]}_norm.weight"


def gguf_files() -> list[GgufCase]:
    parallel = {"use_qkv_bias": False, "use_parallel_residual": True, "qk_layernorm": True}
    formats = K_M | {"output": Type.Q6_K, "ffn_up": Type.Q5_K}
    # The key says "parallel" in files of the sequential form, too: the tensors decide.
    key = {"use_parallel_residual": True}
    return [
        GgufCase("gguf-stablelm-q4_k_m", "stablelm", _GGUF, formats, extra=key),
        GgufCase(
            "gguf-stablelm-parallel", "stablelm", _GGUF | parallel, {"*": Type.Q5_1}, extra=key, tensor_name=_stacked
        ),
    ]
