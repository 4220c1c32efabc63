"""Gemma: norms by 1 + w, the exact GELU, embeddings times the root of the width."""

import numpy as np

from case import Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

# Hidden 96: its root is rounded by the dtype that it meets, which a power of four would hide. The oracle does not read
# hidden_activation, so the exact GELU runs although the file names the other.
_VARIANTS = {
    "gemma": config(
        "gemma", hidden_size=96, head_dim=32, num_hidden_layers=3, hidden_activation="gelu_pytorch_tanh"
    ),
    "gemma-traditional": config(
        "gemma", hidden_size=96, head_dim=32, num_hidden_layers=2, rope_traditional=True, rope_theta=5e5
    ),
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("gemma", ("float32", "bfloat16"), "dense"),
            ("gemma", ("bfloat16",), "q4"),
            ("gemma-traditional", ("bfloat16",), "dense"),
        ],
        norm_centre=0.0,
        embedding_spread=0.25 / np.sqrt(96),
    )


# Hidden 512: its root is rounded in f32, which that of 256 would hide.
_GGUF = GGUF | {"model_type": "gemma", "hidden_size": 512, "head_dim": 64, "rope_theta": 1e4, "num_hidden_layers": 2}


def gguf_files() -> list[GgufCase]:
    return [GgufCase("gguf-gemma-q4_k_m", "gemma", _GGUF, K_M | {"ffn_gate": Type.Q5_0}, norms_plus_one=True)]
