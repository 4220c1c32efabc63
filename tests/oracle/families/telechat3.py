"""TeleChat3: llama, untied by default, yarn under a name of its own."""

from case import Case, config, table

_TELECHAT = config("telechat3", num_hidden_layers=3, rope_theta=1e6, head_dim=32)
_YARN = {"type": "telechat3-yarn", "factor": 5.0, "original_max_position_embeddings": 64}
_VARIANTS = {
    # The mscale of this yarn is 0.1 ln 5 + 1 on q and k each: the default of mscale_all_dim is 0.
    "telechat3": _TELECHAT | {"rope_scaling": _YARN},
    "telechat3-biased": _TELECHAT | {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("telechat3", ("float32", "bfloat16"), "dense"),
            ("telechat3-biased", ("bfloat16",), "dense"),
            ("telechat3", ("bfloat16",), "q4"),
        ],
    )
