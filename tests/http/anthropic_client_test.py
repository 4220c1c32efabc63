"""The anthropic package against our server, used as its documentation shows it, and the letter of the API behind it."""

import json
import pathlib
import tempfile
import unittest

import anthropic

import make_models
from server import Server, parse_named_events

MESSAGES = [{"role": "user", "content": "hi"}]
# The package has no name for the temperature any more.
BODY = {"model": "chain", "max_tokens": 50, "messages": MESSAGES, "extra_body": {"temperature": 0}}
TOOLS = [
    {"name": "weather", "description": "of a city", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}},
    {"name": "now", "input_schema": {"type": "object", "properties": {}}},
]
TOOL_TURNS = [
    {"role": "user", "content": "weather?"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "two calls", "signature": "s"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Rome"}},
            {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "sunny"}]},
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no clock", "is_error": True},
            {"type": "text", "text": "and?"},
        ],
    },
]
# Everything that a request may hold, in one line each.
TEMPLATE = (
    "{% for t in tools or [] %}T {{ t | tojson }}\n{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}{{ ' ' + m.name if m.name else '' }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def client_of(server: Server) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=f"http://127.0.0.1:{server.port}", api_key="unused", max_retries=0, timeout=60)


def total_input(usage) -> int:
    return usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens


class ChainModel(unittest.TestCase):
    """A model that spells a known answer."""

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server("chain"))
        cls.client = cls.enterClassContext(client_of(cls.server))

    def ask(self, **fields):
        return self.client.messages.create(**(BODY | fields))

    def test_a_whole_message(self):
        message = self.ask()
        self.assertEqual([(b.type, b.text) for b in message.content], [("text", make_models.ANSWER)])
        self.assertEqual((message.role, message.stop_reason, message.stop_sequence), ("assistant", "end_turn", None))
        self.assertRegex(message.id, r"^msg_\w{24}$")
        self.assertEqual(message.usage.output_tokens, len(make_models.ANSWER.encode()) + 1)

    def test_the_stream_helper_gives_the_whole_message(self):
        with self.client.messages.stream(**BODY) as stream:
            self.assertEqual("".join(stream.text_stream), make_models.ANSWER)
            streamed = stream.get_final_message()
        whole = self.ask()
        self.assertEqual([b.text for b in streamed.content], [b.text for b in whole.content])
        self.assertEqual((streamed.stop_reason, streamed.usage.output_tokens), (whole.stop_reason, whole.usage.output_tokens))
        self.assertEqual(total_input(streamed.usage), total_input(whole.usage))

    def test_the_events_by_the_letter(self):
        body = {"model": "chain", "max_tokens": 50, "messages": MESSAGES, "temperature": 0, "stream": True}
        status, headers, raw = self.server.ask("POST", "/v1/messages?beta=true", body, {"X-Request-Id": "mine"})
        self.assertEqual((status, headers["request-id"]), (200, "mine"))
        events = parse_named_events(raw)
        kinds = [event["type"] for event in events]
        deltas = len(make_models.ANSWER)
        self.assertEqual(
            kinds,
            ["message_start", "ping", "content_block_start", *["content_block_delta"] * deltas, "content_block_stop"]
            + ["message_delta", "message_stop"],
        )
        self.assertEqual([e["delta"]["text"] for e in events if e["type"] == "content_block_delta"], list(make_models.ANSWER))

    def test_why_a_message_ends(self):
        self.assertEqual(self.ask(max_tokens=1).stop_reason, "max_tokens")
        stopped = self.ask(stop_sequences=["zz", "b"])
        self.assertEqual((stopped.stop_reason, stopped.stop_sequence, stopped.content[0].text), ("stop_sequence", "b", "a😸"))
        nothing = self.ask(max_tokens=0)
        self.assertEqual((nothing.content, nothing.stop_reason, nothing.usage.output_tokens), ([], "max_tokens", 0))

    def test_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["chain"])
        self.assertEqual(self.client.models.retrieve("chain").display_name, "chain")

    def test_errors_have_their_classes(self):
        with self.assertRaises(anthropic.NotFoundError) as caught:
            self.ask(model="nope")
        self.assertEqual(caught.exception.body["error"]["type"], "not_found_error")
        self.assertEqual(caught.exception.body["request_id"], caught.exception.request_id)
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.ask(extra_body={"temperature": -1})
        self.assertIn("'temperature'", caught.exception.body["error"]["message"])
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.ask(messages=[{"role": "user", "content": "x" * (make_models.CONTEXT + 1)}])
        self.assertIn("maximum context length", caught.exception.body["error"]["message"])
        for method, path, status in (("GET", "/v1/messages", 405), ("POST", "/v1/messages/nothing", 404), ("POST", "/v1/messages", 400)):
            got, _, raw = self.server.ask(method, path, b"{")
            self.assertEqual(got, status)
            self.assertIn(b'"type":"error"', raw)


class CallingModel(unittest.TestCase):
    """A model that thinks and calls `add` when there are tools, and tells the sum when there is a result."""

    ADD = {"name": "add", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}}
    BODY = {"model": "caller", "max_tokens": 60, "messages": MESSAGES, "tools": [ADD], "thinking": {"type": "adaptive"}}

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server("caller"))
        cls.client = cls.enterClassContext(client_of(cls.server))

    def test_a_call_and_its_result(self):
        call = self.client.messages.create(**self.BODY)
        self.assertEqual([block.type for block in call.content], ["thinking", "tool_use"])
        self.assertEqual((call.content[0].thinking, call.stop_reason), ("I add.", "tool_use"))
        self.assertEqual((call.content[1].name, call.content[1].input), ("add", {"a": 1, "b": 2}))
        result = {"type": "tool_result", "tool_use_id": call.content[1].id, "content": "3"}
        turns = [*MESSAGES, {"role": "assistant", "content": call.content}, {"role": "user", "content": [result]}]
        told = self.client.messages.create(**(self.BODY | {"messages": turns}))
        self.assertEqual(([block.text for block in told.content], told.stop_reason), (["The sum is 3."], "end_turn"))

    def test_the_stream_is_the_whole_message(self):
        whole = self.client.messages.create(**self.BODY).to_dict()
        with self.client.messages.stream(**self.BODY) as stream:
            streamed = stream.get_final_message().to_dict()
        for message in (whole, streamed):
            message["content"][1].pop("id")
        self.assertEqual(streamed["content"], whole["content"])
        self.assertEqual(streamed["stop_reason"], whole["stop_reason"])
        _, _, raw = self.server.ask("POST", "/v1/messages", self.BODY | {"stream": True})
        events = parse_named_events(raw)
        opened = [(e["index"], e["content_block"]["type"]) for e in events if e["type"] == "content_block_start"]
        self.assertEqual(opened, [(0, "thinking"), (1, "tool_use")])
        fragments = [e["delta"].get("partial_json") for e in events if e["type"] == "content_block_delta" and e["index"] == 1]
        self.assertGreater(len(fragments), 1)
        self.assertEqual(json.loads("".join(fragments)), {"a": 1, "b": 2})


class FormedOutput(unittest.TestCase):
    def test_an_output_format_is_followed(self):
        schema = {
            "type": "object",
            "properties": {"colour": {"enum": ["red", "blue"]}, "is_warm": {"type": "boolean"}},
            "required": ["colour", "is_warm"],
            "additionalProperties": False,
        }
        with Server("random") as server, client_of(server) as client:
            for fields in ({"output_config": {"format": {"type": "json_schema", "schema": schema}}},):
                message = client.messages.create(model="random", max_tokens=500, messages=MESSAGES, **fields)
                answer = json.loads(message.content[0].text)
                self.assertIn(answer["colour"], ("red", "blue"))
                self.assertIsInstance(answer["is_warm"], bool)


class PrintedRequests(unittest.TestCase):
    """A template that prints all of a request: what is counted is what is asked."""

    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        (folder / "template.jinja").write_text(TEMPLATE)
        cls.server = cls.enterClassContext(
            Server("random", "--chat-template", str(folder / "template.jinja"), "--prompt-cache", "64M")
        )
        cls.client = cls.enterClassContext(client_of(cls.server))

    def counts(self, **fields) -> tuple[int, int]:
        """(count_tokens, the input of the message)"""
        body = {"model": "random", "messages": MESSAGES} | fields
        counted = self.client.messages.count_tokens(**body)
        return counted.input_tokens, total_input(self.client.messages.create(max_tokens=1, **body).usage)

    def test_counting_gives_the_input_of_the_message(self):
        plain, used = self.counts()
        self.assertEqual(plain, used)
        system = [{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}]
        for more in ({"system": "S"}, {"system": system}, {"tools": TOOLS}, {"messages": TOOL_TURNS}):
            counted, used = self.counts(**more)
            self.assertEqual(counted, used, more)
            self.assertGreater(counted, plain, more)

    def test_the_request_of_a_coding_client(self):
        system = [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}} for text in ("You", "are", "it")]
        tools = [{"name": f"t{i}", "description": "d", "input_schema": {"type": "object"}} for i in range(26)]
        tools += [{"type": f"{name}_20250305", "name": name} for name in ("web_search", "bash", "text_editor", "memory")]
        body = {
            "model": "claude-x",
            "max_tokens": 5,
            "system": system,
            "tools": tools,
            "messages": TOOL_TURNS,
            "thinking": {"type": "adaptive"},
            "metadata": {"user_id": "u"},
            "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
            "service_tier": "auto",
            "zzz_unknown": 1,
        }
        status, _, raw = self.server.ask("POST", "/v1/messages?beta=true", body, {"anthropic-beta": "a,b"})
        self.assertEqual(status, 200, raw)

    def test_a_billing_line_that_changes_leaves_the_cache_whole(self):
        def ask(nonce: str):
            header = f"x-anthropic-billing-header: cc_version=1.2.3; cch={nonce};"
            system = [{"type": "text", "text": header}, {"type": "text", "text": "You are " + "a long story " * 20}]
            return self.client.messages.create(model="random", max_tokens=1, system=system, messages=MESSAGES).usage

        first, second = ask("ab12c"), ask("ff034")
        self.assertEqual(total_input(first), total_input(second))
        self.assertEqual(second.input_tokens, 1)


if __name__ == "__main__":
    unittest.main()
