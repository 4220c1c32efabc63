"""The ollama package against our server, used as its documentation shows it, and the letter of the API behind it."""

import json
import time
import unittest

import ollama

import make_models
from server import Server

MESSAGES = [{"role": "user", "content": "hi"}]
GREEDY = {"temperature": 0, "repeat_penalty": 1.0}


class ChainModel(unittest.TestCase):
    """A model that spells a known answer."""

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server("chain"))
        cls.client = cls.enterClassContext(ollama.Client(host=f"http://127.0.0.1:{cls.server.port}"))

    def test_chat_whole_and_streamed(self):
        whole = self.client.chat(model="chain", messages=MESSAGES, options=GREEDY)
        self.assertEqual(whole.message.content, make_models.ANSWER)
        self.assertEqual((whole.done, whole.done_reason), (True, "stop"))
        parts = list(self.client.chat(model="chain:latest", messages=MESSAGES, options=GREEDY, stream=True))
        self.assertEqual("".join(part.message.content for part in parts), make_models.ANSWER)
        self.assertEqual([part.done for part in parts], [False] * (len(parts) - 1) + [True])
        self.assertEqual((parts[-1].eval_count, parts[-1].prompt_eval_count), (whole.eval_count, whole.prompt_eval_count))
        self.assertGreater(parts[-1].total_duration, 0)

    def test_lines_by_the_letter(self):
        status, headers, raw = self.server.ask("POST", "/api/chat", {"model": "chain", "messages": MESSAGES, "options": GREEDY})
        self.assertEqual((status, headers["content-type"]), (200, "application/x-ndjson"))
        self.assertTrue(raw.endswith(b"\n"))
        lines = [json.loads(line) for line in raw.decode().splitlines()]
        self.assertEqual([line["done"] for line in lines], [False] * (len(lines) - 1) + [True])

    def test_generate(self):
        answer = self.client.generate(model="chain", prompt="hi", options=GREEDY | {"num_predict": 1})
        self.assertEqual((answer.response, answer.done_reason), ("a", "length"))
        raw = self.client.generate(model="chain", prompt="x\n", raw=True, options=GREEDY, stream=True)
        self.assertEqual("".join(part.response for part in raw), make_models.ANSWER)
        self.assertEqual(self.client.generate(model="chain").done_reason, "load")

    def test_log_probabilities(self):
        answer = self.client.chat(model="chain", messages=MESSAGES, options=GREEDY, logprobs=True, top_logprobs=2)
        self.assertEqual(answer.logprobs[0].token, "a")
        self.assertEqual(len(answer.logprobs[0].top_logprobs), 2)

    def test_models(self):
        self.assertEqual([model.model for model in self.client.list().models], ["chain"])
        self.assertEqual([model.name for model in self.client.ps().models], ["chain"])
        shown = self.client.show("chain")
        self.assertEqual(shown.template, make_models.TEMPLATE)
        self.assertIn("completion", shown.capabilities)
        self.assertEqual(shown.modelinfo[shown.modelinfo["general.architecture"] + ".context_length"], make_models.CONTEXT)

    def test_a_time_of_zero_unloads_the_model(self):
        self.assertEqual(self.client.generate(model="chain", keep_alive=0).done_reason, "unload")
        end = time.monotonic() + 20
        while self.client.ps().models and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(list(self.client.ps().models), [])
        self.assertEqual(self.client.generate(model="chain", prompt="hi", options=GREEDY | {"num_predict": 1}).response, "a")

    def test_errors(self):
        for call in (lambda: self.client.pull("x"), lambda: self.client.delete("x"), lambda: self.client.copy("a", "b")):
            with self.assertRaises(ollama.ResponseError) as caught:
                call()
            self.assertEqual(caught.exception.status_code, 501)
        with self.assertRaises(ollama.ResponseError) as caught:
            self.client.chat(model="nope", messages=MESSAGES)
        self.assertEqual(caught.exception.status_code, 404)
        with self.assertRaises(ollama.ResponseError) as caught:
            self.client.generate(model="chain", prompt="x" * (make_models.CONTEXT + 1), options={"num_ctx": 10**6})
        self.assertEqual(caught.exception.status_code, 400)
        self.assertIn("maximum context length", caught.exception.error)


class CallingModel(unittest.TestCase):
    """A model that thinks and calls `add` when there are tools, and tells the sum when there is a result."""

    def test_a_call_and_its_result(self):
        def add(a: int, b: int) -> int:
            """Add.

            Args:
              a: one
              b: another
            """
            return a + b

        with Server("caller") as server:
            client = ollama.Client(host=f"http://127.0.0.1:{server.port}")
            whole = client.chat(model="caller", messages=MESSAGES, tools=[add], options=GREEDY, think=True)
            self.assertEqual((whole.message.thinking, whole.message.content, whole.done_reason), ("I add.", "", "stop"))
            function = whole.message.tool_calls[0].function
            self.assertEqual((function.name, function.arguments), ("add", {"a": 1, "b": 2}))
            parts = list(client.chat(model="caller", messages=MESSAGES, tools=[add], options=GREEDY, think=True, stream=True))
            self.assertEqual([c.function.arguments for p in parts for c in p.message.tool_calls or []], [{"a": 1, "b": 2}])
            self.assertEqual("".join(part.message.thinking or "" for part in parts), "I add.")
            result = {"role": "tool", "tool_name": "add", "content": str(add(**function.arguments))}
            told = client.chat(model="caller", messages=[*MESSAGES, whole.message, result], tools=[add], options=GREEDY)
            self.assertEqual(told.message.content, "The sum is 3.")


class FormedOutput(unittest.TestCase):
    def test_a_schema_is_followed_with_a_template_and_without(self):
        schema = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": False}
        with Server("random") as server:
            client = ollama.Client(host=f"http://127.0.0.1:{server.port}")
            options = {"num_predict": 500}
            chat = client.chat(model="random", messages=MESSAGES, format=schema, options=options)
            self.assertIn(json.loads(chat.message.content)["n"], (1, 2))
            raw = client.generate(model="random", prompt="x", raw=True, format=schema, options=options)
            self.assertIn(json.loads(raw.response)["n"], (1, 2))


if __name__ == "__main__":
    unittest.main()
