"""POST /v1/completions: prompt shapes, batches, echo, log-probabilities against mlx-lm."""

import unittest

import mlx.core as mx
import numpy as np
from mlx_lm.utils import load_model

import make_models
from server import MODELS, Server

PATH = "/v1/completions"
# Both sides compute the same f32 logits; a log-softmax over 258 of them, once in f64 and once in f32, differs by a few
# f32 roundings of values around 10.
TOLERANCE = 1e-4


class Completions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server("random"))
        mx.set_default_device(mx.cpu)
        cls.oracle, _ = load_model(MODELS / "random")

    def log_softmax(self, tokens: list[int]) -> np.ndarray:
        logits = np.array(self.oracle(mx.array([tokens]))[0]).astype(np.float64)
        shifted = logits - logits.max(axis=-1, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))

    def choices(self, prompt, **fields) -> list[dict]:
        return self.server.post(PATH, {"prompt": prompt, **fields})["choices"]

    def test_a_prompt_of_token_ids_equals_its_text(self):
        text = self.choices("hello", seed=5, max_tokens=10)[0]["text"]
        self.assertEqual(self.choices(list(b"hello"), seed=5, max_tokens=10)[0]["text"], text)
        self.assertEqual(self.choices([list(b"hello")], seed=5, max_tokens=10)[0]["text"], text)

    def test_sixteen_tokens_are_made_when_nothing_is_said(self):
        answer = self.server.post(PATH, {"prompt": "x", "ignore_eos": True})
        self.assertEqual(answer["usage"]["completion_tokens"], 16)
        self.assertEqual(answer["object"], "text_completion")
        self.assertRegex(answer["id"], r"^cmpl-\w{24}$")

    def test_a_batch_equals_single_calls(self):
        prompts = ["one", "two and more", "three"]
        batch = self.choices(prompts, seed=5, n=2, max_tokens=8)
        self.assertEqual([c["index"] for c in batch], list(range(6)))
        single = [c["text"] for p in prompts for c in self.choices(p, seed=5, n=2, max_tokens=8)]
        self.assertEqual([c["text"] for c in batch], single)

    def test_the_likeliest_tokens_are_those_of_a_log_softmax_of_the_oracle(self):
        prompt = list(b"the quick brown fox")
        choice = self.server.post(PATH, {"prompt": prompt, "logprobs": 20, "max_tokens": 6, "temperature": 1, "seed": 2})
        chat_form = self.server.post(
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": "x"}], "logprobs": True, "top_logprobs": 20, "max_tokens": 3},
        )
        for entry in chat_form["choices"][0]["logprobs"]["content"]:
            values = [other["logprob"] for other in entry["top_logprobs"]]
            self.assertEqual(values, sorted(values, reverse=True))
            self.assertEqual(len(values), 20)
        logprobs = choice["choices"][0]["logprobs"]
        tokens = list(prompt)
        for token, value, top in zip(logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"]):
            row = self.log_softmax(tokens)[-1]
            drawn = self.id_of(token)
            self.assertAlmostEqual(value, row[drawn], delta=TOLERANCE)
            self.assertIn(token, top)
            self.assertIn(len(top), (20, 21))  # the drawn token is there even when it is not among the twenty
            best = np.argsort(-row, kind="stable")[:20]
            for other in best:
                self.assertAlmostEqual(top[self.name_of(int(other))], row[other], delta=TOLERANCE)
            tokens.append(drawn)

    @staticmethod
    def name_of(token: int) -> str:
        if token >= 256:
            return make_models.SPECIAL[token - 256]
        return chr(token) if token < 128 else f"bytes:\\x{token:02x}"

    @classmethod
    def id_of(cls, name: str) -> int:
        return next(token for token in range(make_models.VOCABULARY) if cls.name_of(token) == name)

    def test_echo_scores_the_prompt(self):
        prompt = "Zwölf"
        answer = self.server.post(PATH, {"prompt": prompt, "echo": True, "logprobs": 1, "max_tokens": 0})
        choice = answer["choices"][0]
        self.assertEqual((choice["text"], choice["finish_reason"]), (prompt, "length"))
        self.assertEqual(answer["usage"]["completion_tokens"], 0)
        ids = list(prompt.encode())
        table = self.log_softmax(ids)
        logprobs = choice["logprobs"]
        self.assertIsNone(logprobs["token_logprobs"][0])
        self.assertIsNone(logprobs["top_logprobs"][0])
        for t in range(1, len(ids)):
            self.assertAlmostEqual(logprobs["token_logprobs"][t], table[t - 1, ids[t]], delta=TOLERANCE)
            self.assertAlmostEqual(max(logprobs["top_logprobs"][t].values()), table[t - 1].max(), delta=TOLERANCE)
        self.assertEqual(logprobs["text_offset"], [0, 1, 2, 2, 3, 4])

    def test_offsets_are_code_points_into_prompt_and_text(self):
        body = {"prompt": "né", "max_tokens": 12, "logprobs": 0, "seed": 1, "ignore_eos": True}
        for echo in (False, True):
            choice = self.server.post(PATH, body | {"echo": echo})["choices"][0]
            text = choice["text"] if echo else body["prompt"] + choice["text"]
            logprobs = choice["logprobs"]
            self.assertEqual(logprobs["text_offset"], sorted(logprobs["text_offset"]))
            for token, offset in zip(logprobs["tokens"], logprobs["text_offset"]):
                if not token.startswith("bytes:"):
                    self.assertEqual(text[offset], token)
            self.assertGreaterEqual(logprobs["text_offset"][0], 0 if echo else 2)

    def test_a_stream_joins_to_the_whole(self):
        body = {"prompt": ["a", "b"], "n": 2, "seed": 4, "max_tokens": 6, "echo": True, "logprobs": 2}
        whole = self.server.post(PATH, body)
        chunks = self.server.stream(PATH, body | {"stream_options": {"include_usage": True}})
        self.assertEqual(chunks[-1]["usage"], whole["usage"])
        for want in whole["choices"]:
            parts = [c["choices"][0] for c in chunks[:-1] if c["choices"][0]["index"] == want["index"]]
            self.assertEqual("".join(p["text"] for p in parts), want["text"])
            self.assertEqual((parts[-1]["text"], parts[-1]["finish_reason"]), ("", want["finish_reason"]))
            for key, values in want["logprobs"].items():
                self.assertEqual([v for p in parts if p["logprobs"] for v in p["logprobs"][key]], values)

    def test_token_limits_of_nothing_and_of_one(self):
        none = self.server.post(PATH, {"prompt": "abc", "max_tokens": 0})
        self.assertEqual((none["choices"][0]["text"], none["choices"][0]["finish_reason"]), ("", "length"))
        one = self.server.post(PATH, {"prompt": "abc", "max_tokens": 1, "ignore_eos": True})
        self.assertEqual(one["usage"]["completion_tokens"], 1)

    def test_control_tokens_in_a_prompt_are_parsed(self):
        answer = self.server.post(PATH, {"prompt": "<|im_start|>a", "max_tokens": 0})
        self.assertEqual(answer["usage"]["prompt_tokens"], 2)


if __name__ == "__main__":
    unittest.main()
