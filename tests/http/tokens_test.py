"""POST /tokenize, /detokenize, /apply-template, /completion and /infill, against the tokenizers package."""

import json
import random
import unittest

import tokenizers

import make_models
from server import MODELS, Server, chat

SEED = 20261201


class Tokens(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server("chain"))
        cls.oracle = tokenizers.Tokenizer.from_file(str(MODELS / "chain" / "tokenizer.json"))

    def test_every_text_comes_back(self):
        rng = random.Random(SEED)
        print(f"seed {SEED}")
        for _ in range(200):
            parts = [chr(rng.choice([*range(1, 0x250), 0x4F5C, 0x1F638])) for _ in range(rng.randrange(20))]
            text = "".join(parts) + rng.choice(["", "<|im_end|>", "<|im_", "\r\n"])
            ids = self.server.post("/tokenize", {"content": text, "parse_special": False})["tokens"]
            self.assertEqual(self.server.post("/detokenize", {"tokens": ids}), {"content": text, "prompt": text})
            parsed = self.server.post("/tokenize", {"prompt": text})["tokens"]
            self.assertEqual(parsed, self.oracle.encode(text).ids)

    def test_a_chat_is_counted_as_its_answer_counts_it(self):
        body = chat("hé <|im_end|>")
        used = self.server.post("/v1/chat/completions", body | {"max_tokens": 1})["usage"]["prompt_tokens"]
        counted = self.server.post("/tokenize", body)
        self.assertEqual((counted["count"], counted["max_model_len"]), (used, make_models.CONTEXT))
        prompt = self.server.post("/apply-template", body)["prompt"]
        self.assertEqual(prompt, "<|im_start|>user\nhé <|im_end|><|im_end|>\n<|im_start|>assistant\n")

    def test_the_completion_of_llama_cpp(self):
        body = {"prompt": "x\n", "temperature": 0}
        whole = self.server.post("/completion", body)
        self.assertEqual((whole["content"], whole["stop_type"]), (make_models.ANSWER, "eos"))
        self.assertEqual(self.server.post("/completion", body | {"stop": ["b"]})["stopping_word"], "b")
        self.assertEqual(self.server.post("/completion", body | {"n_predict": 1})["stop_type"], "limit")
        status, headers, raw = self.server.ask("POST", "/completion", body | {"stream": True})
        self.assertEqual((status, headers["content-type"]), (200, "text/event-stream; charset=utf-8"))
        events = [json.loads(block[len("data: ") :]) for block in raw.decode().split("\n\n") if block]
        self.assertEqual("".join(event["content"] for event in events), make_models.ANSWER)
        self.assertEqual([event["stop"] for event in events], [False] * (len(events) - 1) + [True])

    def test_what_the_server_says_of_itself(self):
        def get(path):
            status, _, raw = self.server.ask("GET", path)
            self.assertEqual(status, 200, path)
            return json.loads(raw)

        self.assertEqual(get("/props")["chat_template"], make_models.TEMPLATE)
        self.assertEqual(get("/slots"), [])
        self.assertRegex(get("/v1/version")["version"], r"^\d+\.\d+")

    def test_what_this_model_cannot_do(self):
        self.assertEqual(self.server.ask("POST", "/infill", {"input_prefix": "a"})[0], 501)
        self.assertEqual(self.server.ask("POST", "/v1/rerank", {"query": "a", "documents": ["b"]})[0], 501)


if __name__ == "__main__":
    unittest.main()
