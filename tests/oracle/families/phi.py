"""Phi-1 to Phi-2: both branches side by side over one layer norm, queries in f32, biases everywhere."""

import numpy as np

from case import Case, config, table
from gguf_cases import BASE, K_M, GgufCase, Type

# The default factor 0.4 turns 6 of 16. rms_norm_eps stands beside layer_norm_eps and is not what the norms take.
_PHI = config("phi", num_hidden_layers=3, layer_norm_eps=1e-3, hidden_act="gelu_new", tie_word_embeddings=False)
_VARIANTS = {
    "phi": _PHI,
    "phi-half": _PHI | {"partial_rotary_factor": 0.5, "num_key_value_heads": 4, "num_hidden_layers": 2},
}


def checkpoints() -> list[Case]:
    # bf16 and f16 queries meet the scores in f32: a graph that keeps them would round each score.
    return table(
        _VARIANTS,
        [
            ("phi", ("float32", "bfloat16", "float16"), "dense"),
            ("phi-half", ("bfloat16",), "dense"),
            ("phi", ("bfloat16",), "q4"),
        ],
    )


_GGUF = {key: value for key, value in BASE.items() if key != "rms_norm_eps"} | {
    "model_type": "phi",
    "layer_norm_eps": float(np.float32(1e-3)),
    "partial_rotary_factor": 0.5,
    "rope_theta": 1e4,
    "tie_word_embeddings": False,
    "num_hidden_layers": 2,
}
_STEMS = {"self_attn.dense": "attn_output", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down"}


def _last_norm(path: str) -> str | None:
    return path.replace("model.final_layernorm", "output_norm") if "final_layernorm" in path else None


def gguf_files() -> list[GgufCase]:
    formats = K_M | {"output": Type.Q6_K, "attn_output": Type.Q5_0}
    return [GgufCase("gguf-phi2-q4_k_m", "phi2", _GGUF, formats, stems=_STEMS, tensor_name=_last_norm)]
