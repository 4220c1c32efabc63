"""SmolLM3: layers that do not encode positions, every fourth or as listed."""

from case import Case, config, table
from gguf_cases import BASE as GGUF, K_M, GgufCase, Type

_SMOLLM3 = config("smollm3", rope_theta=5e6, tie_word_embeddings=True)
_VARIANTS = {
    # Four layers: the default interval leaves the last one without rotation.
    "smollm3": _SMOLLM3,
    "smollm3-listed": _SMOLLM3
    | {"no_rope_layers": [0, 1, 1, 0], "tie_word_embeddings": False, "attention_bias": True, "mlp_bias": True},
    "smollm3-interval": _SMOLLM3 | {"no_rope_layer_interval": 3, "num_hidden_layers": 3},
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("smollm3", ("float32", "bfloat16"), "dense"),
            ("smollm3-listed", ("bfloat16",), "dense"),
            ("smollm3-interval", ("float16",), "dense"),
            ("smollm3", ("bfloat16",), "q4"),
        ],
    )


def gguf_files() -> list[GgufCase]:
    # Converters turn the rows of q and k of every layer, also of those that do not rotate; there is no key for them.
    held = GGUF | {"model_type": "smollm3", "num_hidden_layers": 4, "rope_theta": 5e6, "head_dim": 32}
    return [GgufCase("gguf-smollm3-q4_k_m", "smollm3", held, K_M | {"ffn_gate": Type.Q5_0}, permuted=True)]
