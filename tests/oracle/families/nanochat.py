"""nanochat: norms without weights, rotation by negative angles, the squared ReLU, capped logits."""

from case import Case, config, table

# Released configs have rms_norm_eps 1e-6; the oracle takes 1e-5 whatever the file says.
_VARIANTS = {
    "nanochat": config("nanochat", num_hidden_layers=3, hidden_act="relu2"),
    "nanochat-theta": config("nanochat", num_hidden_layers=2, rope_theta=5e5, num_key_value_heads=4),
}


def checkpoints() -> list[Case]:
    return table(
        _VARIANTS,
        [
            ("nanochat", ("float32", "bfloat16"), "dense"),
            ("nanochat-theta", ("bfloat16",), "dense"),
            ("nanochat", ("bfloat16",), "q4"),
        ],
        # The norm behind the embedding hides its size; a wide spread keeps the loud head away from one answer.
        embedding_spread=0.25,
    )
