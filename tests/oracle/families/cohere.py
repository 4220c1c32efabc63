"""Command R: both branches side by side, neighbouring pairs, norms for each head of q and k, scaled logits."""

import numpy as np

from case import Case, config, table
from gguf_cases import BASE, K_M, GgufCase, Type

# The factor of the logits is no power of two: multiplying must round.
_COHERE = config("cohere", num_hidden_layers=3, layer_norm_eps=1e-3, logit_scale=0.3, rope_theta=1e4)
_VARIANTS = {
    # What mlx-lm has a default for is left out: no biases, no norms of q and k.
    "cohere": {key: value for key, value in _COHERE.items() if key != "rope_theta"},
    "cohere-normed": _COHERE | {"use_qk_norm": True, "attention_bias": True, "layer_norm_bias": True},
}


def checkpoints() -> list[Case]:
    # attention + MLP + x, in this order: another order rounds otherwise.
    return table(
        _VARIANTS,
        [
            ("cohere", ("float32", "bfloat16"), "dense"),
            ("cohere-normed", ("float32", "bfloat16"), "dense"),
            ("cohere-normed", ("bfloat16",), "q4"),
        ],
    )


_GGUF = {key: value for key, value in BASE.items() if key != "rms_norm_eps"} | {
    "model_type": "cohere",
    "layer_norm_eps": float(np.float32(1e-3)),
    "logit_scale": float(np.float32(0.3)),
    "rope_theta": 1e4,
    "use_qk_norm": True,
    "num_hidden_layers": 2,
}
_SCALE = {"logit_scale": 0.3, "rope.scaling.type": "none"}


def gguf_files() -> list[GgufCase]:
    # Rows lie as in the checkpoint: neighbours turn together in both. Norms of single heads stay in f32.
    formats = K_M | {"ffn_up": Type.Q5_K, "attn_q_norm": Type.F32, "attn_k_norm": Type.F32}
    plain = _GGUF | {"use_qk_norm": False}
    return [
        GgufCase("gguf-command-r-q4_k_m", "command-r", _GGUF, formats, extra=_SCALE),
        GgufCase("gguf-command-r-q4_0", "command-r", plain, {"*": Type.Q4_0}, extra=_SCALE),
    ]
