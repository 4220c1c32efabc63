"""Runs the example over a tiny checkpoint and compares its tokens with mlx-lm's.

mlx-lm has no such family, but its smollm3 leaves positions out in the layers that a config names; here it is all.

    test.py PROGRAM
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten
from mlx_lm.models import smollm3

LAYERS, WIDTH, VOCABULARY = 2, 32, 96
COMMON = {
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": VOCABULARY,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 128,
    "tie_word_embeddings": True,
}
PROMPT, COUNT, SEED = [5, 17, 80, 3, 3], 12, 20261201


def oracle():
    args = {"model_type": "smollm3", "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "no_rope_layers": [0] * LAYERS}
    model = smollm3.Model(smollm3.ModelArgs.from_dict(COMMON | args))
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    values = [
        (name, mx.array((rng.standard_normal(value.shape) + ("norm" in name)).astype(np.float32) * 0.4))
        for name, value in tree_flatten(model.parameters())
    ]
    model.load_weights(values)
    return model, dict(values)


def greedy(model):
    tokens = list(PROMPT)
    for _ in range(COUNT):
        tokens.append(int(mx.argmax(model(mx.array([tokens]))[0, -1])))
    return tokens[len(PROMPT) :]


def run(program, folder):
    arguments = [program, str(folder), ",".join(map(str, PROMPT)), str(COUNT)]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=60)


def main(program):
    model, weights = oracle()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        config = COMMON | {"model_type": "nope", "width": WIDTH, "depth": LAYERS, "eos_token_id": VOCABULARY - 1}
        (folder / "config.json").write_text(json.dumps(config))
        mx.save_safetensors(str(folder / "model.safetensors"), weights)
        done = run(program, folder)
        assert done.returncode == 0, done.stderr
        expected = f"profile: nope\ntokens: {','.join(map(str, greedy(model)))}\n"
        assert done.stdout == expected, (done.stdout, expected)
        assert len(set(greedy(model))) > 3, "an answer of one token over and over shows little"
        # The built-in families are there, too: what is no checkpoint of any of them is refused by name.
        (folder / "config.json").write_text(json.dumps(config | {"model_type": "hyena"}))
        done = run(program, folder)
        assert done.returncode == 1 and "hyena" in done.stderr and "nope" in done.stderr and "llama" in done.stderr


if __name__ == "__main__":
    main(sys.argv[1])
