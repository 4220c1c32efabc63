"""POST /v1/embeddings: a text encoder against `godwit embed`, and hidden states of a decoder against mlx-lm."""

import base64
import json
import os
import subprocess
import unittest

import mlx.core as mx
import numpy as np
from mlx_lm.utils import load_model

from server import BINARY, MODELS, Server, chat

MINILM = os.environ["GODWIT_MINILM"]
EMBEDDINGS = "/v1/embeddings"
TEXTS = ["a cat", "the dog of the house", "作, 😸 and words", "a cat"]


def vectors_of(answer: dict) -> np.ndarray:
    assert [item["index"] for item in answer["data"]] == list(range(len(answer["data"])))
    return np.array([item["embedding"] for item in answer["data"]], dtype=np.float32)


class Encoder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(MINILM, "--alias", "mini"))

    def ask(self, given, **fields) -> dict:
        return self.server.post(EMBEDDINGS, {"input": given, **fields})

    def test_vectors_are_those_of_the_command(self):
        arguments = [part for text in TEXTS for part in ("-p", text)]
        done = subprocess.run([BINARY, "embed", "-m", MINILM, "--json", *arguments], capture_output=True, check=True)
        want = json.loads(done.stdout)
        answer = self.ask(TEXTS, model="mini")
        self.assertEqual(vectors_of(answer).tobytes(), np.array(want["embeddings"], dtype=np.float32).tobytes())
        self.assertEqual(answer["usage"], {"prompt_tokens": want["tokens"], "total_tokens": want["tokens"]})
        self.assertTrue(np.allclose(np.linalg.norm(vectors_of(answer), axis=1), 1, atol=1e-3))

    def test_a_batch_has_the_bits_of_single_texts_and_base64_those_of_numbers(self):
        batch = vectors_of(self.ask(TEXTS))
        for text, vector in zip(TEXTS, batch):
            self.assertEqual(vectors_of(self.ask(text))[0].tobytes(), vector.tobytes())
        coded = self.ask(TEXTS, encoding_format="base64")["data"]
        self.assertEqual(b"".join(base64.b64decode(item["embedding"]) for item in coded), batch.astype("<f4").tobytes())

    def refused(self, body: dict) -> tuple:
        status, _, raw = self.server.ask("POST", EMBEDDINGS, body)
        return status, json.loads(raw)["error"]["code"]

    def test_refusals(self):
        self.assertEqual(self.refused({"input": ""}), (400, "invalid_value"))
        self.assertEqual(self.refused({"input": "word " * 600}), (400, "context_length_exceeded"))
        self.assertEqual(self.refused({"input": [1, 2]}), (400, "invalid_value"))
        self.assertEqual(self.refused({"input": "a", "dimensions": 12}), (400, "invalid_value"))
        self.assertEqual(self.refused({"input": "a", "dimensions": 384, "model": "nope"}), (404, "model_not_found"))
        for path, body in (("/v1/chat/completions", chat()), ("/v1/completions", {"prompt": "a"})):
            status, _, raw = self.server.ask("POST", path, body)
            self.assertEqual(status, 400, raw)

    def test_token_ids_of_its_own_are_taken_on_request(self):
        with Server(MINILM, "--embed-accept-token-ids") as server:
            ids = server.post("/tokenize", {"prompt": TEXTS[1]})["tokens"]
            by_ids = server.post(EMBEDDINGS, {"input": [ids]})
            self.assertEqual(vectors_of(by_ids).tobytes(), vectors_of(self.ask(TEXTS[1])).tobytes())


class Decoder(unittest.TestCase):
    def test_hidden_states_are_pooled(self):
        model, _ = load_model(MODELS / "random")
        ways = {"mean": lambda rows: rows.mean(axis=0), "last": lambda rows: rows[-1]}
        for name, pool in ways.items():
            with Server("random", "--pooling", name) as server:
                for text in ("hello", "x" * 300):
                    states = model.model(mx.array([list(text.encode())]))[0].astype(mx.float32)
                    want = pool(np.array(states))
                    want = want / np.linalg.norm(want)
                    got = vectors_of(server.post(EMBEDDINGS, {"input": text}))[0]
                    self.assertGreater(float(got @ want), 0.99999, (name, text))
                self.assertEqual(len(server.post("/v1/chat/completions", chat(max_tokens=3))["choices"]), 1)

    def test_a_model_that_was_not_asked_to_embed_says_so(self):
        with Server("random") as server:
            status, _, raw = server.ask("POST", EMBEDDINGS, {"input": "a"})
            self.assertEqual(status, 400)
            self.assertIn("does not support embeddings", json.loads(raw)["error"]["message"])


if __name__ == "__main__":
    unittest.main()
