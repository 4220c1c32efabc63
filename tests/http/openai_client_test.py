"""The openai package against our server, used as its documentation shows it."""

import unittest

import openai

import make_models
from server import Server

MESSAGES = [{"role": "user", "content": "hi"}]


class OpenAiClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server("chain"))
        cls.client = cls.enterClassContext(
            openai.OpenAI(base_url=f"http://127.0.0.1:{cls.server.port}/v1", api_key="unused", max_retries=0, timeout=60)
        )

    def test_a_whole_chat_answer(self):
        answer = self.client.chat.completions.create(model="chain", messages=MESSAGES, temperature=0, logprobs=True)
        self.assertEqual(answer.choices[0].message.content, make_models.ANSWER)
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)
        self.assertEqual(answer.choices[0].logprobs.content[0].token, "a")

    def test_a_streamed_chat_answer(self):
        stream = self.client.chat.completions.create(
            model="chain", messages=MESSAGES, temperature=0, stream=True, stream_options={"include_usage": True}
        )
        text, usage = "", None
        for chunk in stream:
            text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
            usage = chunk.usage or usage
        self.assertEqual(text, make_models.ANSWER)
        self.assertGreater(usage.completion_tokens, 0)

    def test_the_stream_helper(self):
        with self.client.chat.completions.stream(model="chain", messages=MESSAGES, temperature=0) as stream:
            for _ in stream:
                pass
            self.assertEqual(stream.get_final_completion().choices[0].message.content, make_models.ANSWER)

    def test_text_completions(self):
        answer = self.client.completions.create(model="chain", prompt="x\n", temperature=0, max_tokens=30)
        self.assertEqual(answer.choices[0].text, make_models.ANSWER)
        parts = self.client.completions.create(model="chain", prompt="x\n", temperature=0, max_tokens=30, stream=True)
        self.assertEqual("".join(part.choices[0].text for part in parts), make_models.ANSWER)

    def test_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["chain"])
        self.assertEqual(self.client.models.retrieve("chain").owned_by, "godwit")

    def test_errors_have_their_classes(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.chat.completions.create(model="chain", messages=MESSAGES, temperature=-1)
        self.assertEqual((caught.exception.param, caught.exception.code), ("temperature", "invalid_value"))
        with self.assertRaises(openai.NotFoundError):
            self.client.chat.completions.create(model="nope", messages=MESSAGES)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.completions.create(model="chain", prompt="x" * (make_models.CONTEXT + 1))
        self.assertEqual(caught.exception.code, "context_length_exceeded")


if __name__ == "__main__":
    unittest.main()
