"""MiniCPM: factors on the embeddings, the branches and the input of the head; a file without lm_head."""

from case import Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

# Three layers: 1.4 / sqrt 3 is rounded in every dtype, and so is the quotient by 64 / 24.
_MINICPM = config("minicpm", num_hidden_layers=3, dim_model_base=24, scale_depth=1.4, scale_emb=11.3)
_VARIANTS = {
    "minicpm": _MINICPM,
    "minicpm-linear": _MINICPM | {"rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 3.0}},
}
_OPTIONS = {"embedding_spread": 0.1}


def _without_head(weights: dict) -> dict:
    """mlx-lm copies the embedding then; its product is divided as that of a head of its own."""
    return {name: value for name, value in weights.items() if name != "lm_head.weight"}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("minicpm", ("float32", "bfloat16", "float16"), "dense"),
            ("minicpm-linear", ("bfloat16",), "dense", {"as_written": _without_head}),
            ("minicpm", ("bfloat16",), "q4"),
        ],
        **_OPTIONS,
    )


def gguf_files() -> list[GgufCase]:
    # The file holds the factors formed and in f32, to which the oracle rounds its own.
    held = GGUF | {
        "model_type": "minicpm",
        "num_hidden_layers": 4,
        "rope_theta": 1e4,
        "dim_model_base": 96,
        "scale_depth": 0.875,
        "scale_emb": 11.5,
        "tie_word_embeddings": False,
    }
    extra = {"embedding_scale": 11.5, "residual_scale": 0.4375, "logit_scale": 256 / 96}
    formats = K_M | {"output": Type.Q6_K}
    return [GgufCase("gguf-minicpm-q4_k_m", "minicpm", held, formats, extra=extra, permuted=True)]
