"""Structured output over HTTP, with a model of random weights: whatever it would like to say, the answer fits."""

import concurrent.futures
import json
import re
import unittest

from server import Server

PATH = "/v1/completions"
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "tags": {"type": "array", "items": {"enum": ["a", "bc"]}, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
GRAMMAR = 'root ::= "(" root ")" | [0-9]{1,3}\n'


class Structured(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server("random"))

    def choice(self, **fields) -> dict:
        fields = {"prompt": "x", "temperature": 1, "max_tokens": 200, **fields}
        return self.server.post(PATH, fields)["choices"][0]

    def refusal(self, **fields) -> dict:
        status, _, raw = self.server.ask("POST", PATH, {"prompt": "x", **fields})
        self.assertEqual(status, 400, raw)
        return json.loads(raw)["error"]

    def test_every_answer_that_ends_satisfies_the_schema(self):
        for seed in range(25):
            choice = self.choice(guided_json=SCHEMA, seed=seed)
            self.assertEqual(choice["finish_reason"], "stop", choice)
            value = json.loads(choice["text"])
            self.assertEqual(list(value), ["name", "age", "tags"])
            self.assertLessEqual(len(value["name"]), 8)
            self.assertTrue(0 <= value["age"] <= 130 and isinstance(value["age"], int))
            self.assertTrue(len(value["tags"]) <= 3 and set(value["tags"]) <= {"a", "bc"})

    def test_other_forms(self):
        self.assertRegex(self.choice(guided_regex=r"\d{2}-[a-c]+x", seed=1)["text"], r"^\d{2}-[a-c]+x$")
        self.assertIn(self.choice(guided_choice=["yes", "no"], seed=2)["text"], ["yes", "no"])
        text = self.choice(grammar=GRAMMAR, seed=3)["text"]
        self.assertTrue(re.fullmatch(r"\(*\d{1,3}\)*", text) and text.count("(") == text.count(")"), text)
        objects = [self.choice(response_format={"type": "json_object"}, seed=seed, max_tokens=400) for seed in range(4, 10)]
        whole = [json.loads(choice["text"]) for choice in objects if choice["finish_reason"] == "stop"]
        self.assertTrue(whole, "random weights end an object now and then")
        self.assertTrue(all(isinstance(value, dict) for value in whole))

    def test_both_ends_of_a_choice_are_reached(self):
        texts = {self.choice(guided_choice=["a", "ab"], seed=seed)["text"] for seed in range(40)}
        self.assertEqual(texts, {"a", "ab"})

    def test_a_grammar_of_nothing_gives_an_empty_answer(self):
        choice = self.choice(guided_choice=[""])
        self.assertEqual((choice["text"], choice["finish_reason"]), ("", "stop"))

    def test_a_limit_cuts_the_text(self):
        choice = self.choice(guided_json=SCHEMA, max_tokens=3)
        self.assertEqual((choice["finish_reason"], len(choice["text"])), ("length", 3))

    def test_a_stream_is_the_whole_answer(self):
        fields = {"prompt": "x", "guided_json": SCHEMA, "seed": 7, "max_tokens": 200, "temperature": 1}
        chunks = self.server.stream(PATH, fields)
        self.assertEqual("".join(c["choices"][0]["text"] for c in chunks if c["choices"]), self.choice(**fields)["text"])

    def test_what_cannot_be_followed_is_refused_before_a_stream_begins(self):
        error = self.refusal(stream=True, grammar='root ::= "a"\nx ::= (')
        self.assertIn("line 2, column 8", error["message"])
        error = self.refusal(stream=True, guided_json={"properties": {"a": {"pattern": "(?=a)b"}}})
        self.assertIn("#/properties/a/pattern", error["message"])
        error = self.refusal(guided_regex="a", guided_choice=["b"])
        self.assertEqual(error["param"], "guided_choice")

    def test_bars_that_leave_no_token_are_the_fault_of_the_request(self):
        for stream in (False, True):
            error = self.refusal(stream=stream, allowed_token_ids=[97], logit_bias={"97": -100})
            self.assertIn("logit_bias and allowed_token_ids", error["message"])
            error = self.refusal(stream=stream, guided_choice=["b"], logit_bias=[["b", False]])
            self.assertIn("the form of the answer and logit_bias", error["message"])
        later = {"allowed_token_ids": [97], "bad_words": ["aa"], "max_tokens": 5}  # the second token cannot come
        self.assertIn("bad_words and allowed_token_ids", self.refusal(**later)["message"])
        status, _, raw = self.server.ask("POST", PATH, {"prompt": "x", "stream": True, **later})
        events = [line[len("data: "):] for line in raw.decode().splitlines() if line.startswith("data: ")]
        self.assertEqual((status, json.loads(events[0])["choices"][0]["text"]), (200, "a"))
        self.assertEqual(json.loads(events[-1])["error"]["type"], "invalid_request_error")

    def test_what_is_not_enforced_is_said(self):
        body = {"prompt": "x", "max_tokens": 2, "json_schema": {"type": "array", "uniqueItems": True}}
        status, headers, _ = self.server.ask("POST", PATH, body)
        self.assertEqual(status, 200)
        self.assertIn("#/uniqueItems", headers["warning"])

    def test_neighbours_do_not_notice(self):
        plain = {"seed": 11, "max_tokens": 60, "ignore_eos": True}
        alone = self.choice(**plain)["text"]
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            constrained = [pool.submit(self.choice, guided_json=SCHEMA, seed=seed) for seed in range(4)]
            beside = [pool.submit(self.choice, **plain) for _ in range(2)]
            self.assertEqual({one.result()["text"] for one in beside}, {alone})
            for seed, one in enumerate(constrained):
                self.assertEqual(one.result()["text"], self.choice(guided_json=SCHEMA, seed=seed)["text"])


if __name__ == "__main__":
    unittest.main()
