"""Hunyuan dense: norms on q and k behind their rotation, whose base an alpha raises."""

import numpy as np

from case import Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

_HUNYUAN = config("hunyuan_v1_dense", num_hidden_layers=3, head_dim=32)
_VARIANTS = {
    "hunyuan": _HUNYUAN | {"rope_scaling": {"type": "dynamic", "alpha": 50.0, "factor": 1.0}},
    # No scaling: still the form by periods, whose bits differ from those of the base.
    "hunyuan-plain": _HUNYUAN | {"attention_bias": True, "use_qk_norm": False, "tie_word_embeddings": True},
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("hunyuan", ("float32", "bfloat16"), "dense"),
            ("hunyuan-plain", ("float32", "bfloat16"), "dense"),
            ("hunyuan", ("bfloat16",), "q4"),
        ],
    )


def gguf_files() -> list[GgufCase]:
    # The file holds the raised base, and no alpha.
    base = float(np.float32(1e4 * 50 ** (64 / 62)))
    held = GGUF | {"model_type": "hunyuan_v1_dense", "head_dim": 64, "rope_theta": base}
    stems = {"self_attn.query_layernorm": "attn_q_norm", "self_attn.key_layernorm": "attn_k_norm"}
    extra = {"rope.scaling.type": "none", "rope.scaling.factor": 1.0}
    return [GgufCase("gguf-hunyuan-q4_k_m", "hunyuan-dense", held, K_M, extra=extra, stems=stems)]
