"""StarCoder2: layer norms, biases everywhere, an MLP without a gate, a window that nobody applies."""

import numpy as np

from case import Case, config, table
from gguf_cases import BASE, K_M, GgufCase, Type

# The oracle reads neither the window nor hidden_act: every layer is full and the GELU exact. rms_norm_eps and
# layer_norm_epsilon stand beside norm_epsilon and are not what the norms take.
_STARCODER2 = config(
    "starcoder2",
    num_hidden_layers=3,
    norm_epsilon=1e-3,
    layer_norm_epsilon=1e-6,
    sliding_window=8,
    hidden_act="gelu_pytorch_tanh",
)
_VARIANTS = {
    "starcoder2": _STARCODER2,
    "starcoder2-untied": _STARCODER2 | {"tie_word_embeddings": False, "rope_theta": 1e6, "num_hidden_layers": 2},
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("starcoder2", ("float32", "bfloat16"), "dense"),
            ("starcoder2-untied", ("bfloat16",), "dense"),
            ("starcoder2", ("bfloat16",), "q4"),
        ],
    )


_GGUF = {key: value for key, value in BASE.items() if key != "rms_norm_eps"} | {
    "model_type": "starcoder2",
    "norm_epsilon": float(np.float32(1e-3)),
    "rope_theta": 1e5,
    "num_hidden_layers": 2,
}
_STEMS = {"mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}


def gguf_files() -> list[GgufCase]:
    formats = K_M | {"ffn_up": Type.Q5_K}
    return [GgufCase("gguf-starcoder2-q4_k_m", "starcoder2", _GGUF, formats, stems=_STEMS)]
