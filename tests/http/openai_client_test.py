"""The openai package against our server, used as its documentation shows it."""

import json
import typing
import unittest

import openai
import pydantic

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


class Answer(pydantic.BaseModel):
    ok: bool
    kind: typing.Literal["long", "short"]


ADD = {
    "name": "add",
    "description": "Adds two numbers.",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"], "additionalProperties": False},
}
CHAT_TOOLS = [{"type": "function", "function": ADD}]
RESPONSE_TOOLS = [{"type": "function", **ADD, "strict": False}]


class Tools(unittest.TestCase):
    """A model that thinks, calls `add` when there are tools, and tells the sum when it has the result."""

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server("caller"))
        cls.client = cls.enterClassContext(
            openai.OpenAI(base_url=f"http://127.0.0.1:{cls.server.port}/v1", api_key="unused", max_retries=0, timeout=60)
        )

    def test_a_tool_loop_by_chat(self):
        messages = list(MESSAGES)
        answer = self.client.chat.completions.create(model="caller", messages=messages, tools=CHAT_TOOLS, temperature=0)
        message = answer.choices[0].message
        self.assertEqual(answer.choices[0].finish_reason, "tool_calls")
        self.assertEqual((message.content, message.reasoning_content), (None, "I add."))
        call = message.tool_calls[0]
        self.assertEqual((call.function.name, json.loads(call.function.arguments)), ("add", {"a": 1, "b": 2}))
        messages += [message, {"role": "tool", "tool_call_id": call.id, "content": "3"}]
        answer = self.client.chat.completions.create(model="caller", messages=messages, tools=CHAT_TOOLS, temperature=0)
        self.assertEqual(answer.choices[0].message.content, "".join(make_models.SUM))
        self.assertIsNone(answer.choices[0].message.tool_calls)

    def test_the_stream_helper_puts_calls_together(self):
        with self.client.chat.completions.stream(model="caller", messages=MESSAGES, tools=CHAT_TOOLS, temperature=0) as stream:
            kinds = [event.type for event in stream]
            call = stream.get_final_completion().choices[0].message.tool_calls[0]
        self.assertIn("tool_calls.function.arguments.delta", kinds)
        self.assertEqual(json.loads(call.function.arguments), {"a": 1, "b": 2})

    def test_functions_by_their_older_name(self):
        answer = self.client.chat.completions.create(model="caller", messages=MESSAGES, functions=[ADD], temperature=0)
        self.assertEqual(answer.choices[0].finish_reason, "function_call")
        self.assertEqual(answer.choices[0].message.function_call.name, "add")

    def test_forced_calls(self):
        ping = {"name": "ping", "parameters": {"type": "object", "properties": {"n": {"enum": [7]}}, "required": ["n"], "additionalProperties": False}}
        tools = [*CHAT_TOOLS, {"type": "function", "function": ping}]
        named = {"type": "function", "function": {"name": "ping"}}
        for choice, want in ((named, "ping"), ("required", "add")):
            answer = self.client.chat.completions.create(
                model="caller", messages=MESSAGES, tools=tools, tool_choice=choice, parallel_tool_calls=False, temperature=0,
                reasoning_effort="none", max_tokens=300,
            )
            self.assertEqual(answer.choices[0].finish_reason, "tool_calls", answer)
            self.assertEqual(answer.choices[0].message.tool_calls[0].function.name, want)
        response = self.client.responses.create(
            model="caller", input="hi", tools=[{"type": "function", **ping}], tool_choice={"type": "function", "name": "ping"},
            temperature=0, reasoning={"effort": "none"},
        )
        self.assertEqual(json.loads(response.output[0].arguments), {"n": 7})

    def test_parsed_answers(self):
        answer = self.client.chat.completions.parse(model="caller", messages=MESSAGES, response_format=Answer, reasoning_effort="none", temperature=0)
        self.assertIsInstance(answer.choices[0].message.parsed, Answer)
        response = self.client.responses.parse(model="caller", input="hi", text_format=Answer, reasoning={"effort": "none"}, temperature=0)
        self.assertIsInstance(response.output_parsed, Answer)

    def test_a_tool_loop_by_responses(self):
        first = self.client.responses.create(model="caller", input="1 + 2?", tools=RESPONSE_TOOLS, temperature=0)
        self.assertEqual([item.type for item in first.output], ["reasoning", "function_call"])
        call = first.output[1]
        self.assertEqual(json.loads(call.arguments), {"a": 1, "b": 2})
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "3"}
        chained = self.client.responses.create(
            model="caller", input=[result], previous_response_id=first.id, tools=RESPONSE_TOOLS, temperature=0
        )
        self.assertEqual(chained.output_text, "".join(make_models.SUM))
        flat = self.client.responses.create(
            model="caller", input=[{"role": "user", "content": "1 + 2?"}, *first.output, result], tools=RESPONSE_TOOLS,
            temperature=0, store=False,
        )
        self.assertEqual((flat.output_text, flat.usage.input_tokens), (chained.output_text, chained.usage.input_tokens))

    def test_streamed_responses(self):
        with self.client.responses.stream(model="caller", input="hi", tools=RESPONSE_TOOLS, temperature=0) as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_response()
        self.assertEqual((kinds[0], kinds[-1]), ("response.created", "response.completed"))
        self.assertEqual(json.loads(final.output[1].arguments), {"a": 1, "b": 2})
        events = list(self.client.responses.create(model="caller", input="hi", temperature=0, stream=True))
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
        text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        self.assertEqual(text, make_models.ANSWER)
        self.assertEqual(events[-1].response.output_text, text)

    def test_stored_responses(self):
        made = self.client.responses.create(model="caller", input="hi", temperature=0)
        self.assertEqual(self.client.responses.retrieve(made.id).output_text, make_models.ANSWER)
        self.assertEqual([item.content[0].text for item in self.client.responses.input_items.list(made.id)], ["hi"])
        self.assertEqual(self.client.responses.input_tokens.count(model="caller", input="hi").input_tokens, made.usage.input_tokens)
        self.client.responses.delete(made.id)
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.retrieve(made.id)
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.responses.create(model="caller", input="hi", previous_response_id=made.id)
        self.assertEqual(caught.exception.code, "previous_response_not_found")

    def test_the_limit_is_told(self):
        short = self.client.responses.create(model="caller", input="hi", temperature=0, max_output_tokens=1)
        self.assertEqual((short.status, short.incomplete_details.reason), ("incomplete", "max_output_tokens"))
        with self.assertRaises(openai.LengthFinishReasonError):
            self.client.chat.completions.parse(model="caller", messages=MESSAGES, response_format=Answer, max_tokens=1)


if __name__ == "__main__":
    unittest.main()
