"""godwit embed against transformers' own BERT (its Flax form) on all-MiniLM-L6-v2.

Runs in an environment of its own (requirements.txt beside this file): `./dev test -L slow` makes it.
"""

import json
import os
import subprocess
import unittest

os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import numpy as np  # noqa: E402
import texts  # noqa: E402
from transformers import AutoTokenizer, FlaxBertModel  # noqa: E402

jax.config.update("jax_default_matmul_precision", "highest")
MINILM = os.environ["GODWIT_MINILM"]


class MiniLm(unittest.TestCase):
    def test_cosine_with_transformers(self):
        model, tokenizer = FlaxBertModel.from_pretrained(MINILM, from_pt=True), AutoTokenizer.from_pretrained(MINILM)
        arguments = [part for text in texts.TEXTS for part in ("-p", text)]
        done = subprocess.run([os.environ["GODWIT_BINARY"], "embed", "-m", MINILM, "--json", *arguments], capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        for text, vector in zip(texts.TEXTS, json.loads(done.stdout)["embeddings"]):
            # Words that spell control tokens are text to us; transformers would read them as the tokens.
            inputs = tokenizer(text, return_tensors="np", truncation=True, max_length=256, split_special_tokens=True)
            want = np.asarray(model(**inputs).last_hidden_state)[0].astype(np.float64).mean(0)
            cosine = float(vector @ want / np.linalg.norm(want) / np.linalg.norm(vector))
            print(f"{cosine:.8f} {text[:40]!r}")
            self.assertGreater(cosine, 0.9999)


if __name__ == "__main__":
    unittest.main()
