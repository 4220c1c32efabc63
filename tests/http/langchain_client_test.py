"""langchain-openai against our server, used as its documentation shows it: SmolLM2 answers, MiniLM embeds."""

import os
import unittest

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel, Field

from server import Server


@tool
def weather(city: str, days: int) -> str:
    """The weather of a city for some days."""
    return f"{city}: sun for {days} days"


class City(BaseModel):
    """A city of the world."""

    name: str = Field(description="its name", max_length=20)
    is_capital: bool = Field(description="whether it is a capital")


class LangChain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(os.environ["GODWIT_SMOLLM2_GGUF"]))
        # Explicit nulls and defaults that the package sends by itself are part of the test.
        cls.model = ChatOpenAI(
            base_url=f"http://127.0.0.1:{cls.server.port}/v1", api_key="unused", model="default", temperature=0, max_retries=0, timeout=120,
            max_tokens=200,
        )

    def test_a_chat_with_a_system_message(self):
        answer = self.model.invoke([SystemMessage("Answer in one word."), HumanMessage("What is the capital of France?")])
        self.assertIn("Paris", answer.content)
        self.assertEqual(answer.response_metadata["finish_reason"], "stop")
        self.assertEqual(answer.usage_metadata["total_tokens"], answer.usage_metadata["input_tokens"] + answer.usage_metadata["output_tokens"])

    def test_a_stream_joins_to_the_whole_answer(self):
        question = "Count from one to five."
        chunks = list(self.model.stream(question, max_tokens=40))
        self.assertGreater(len(chunks), 5)
        self.assertEqual("".join(chunk.content for chunk in chunks), self.model.invoke(question, max_tokens=40).content)

    def test_a_batch_equals_single_calls(self):
        questions = ["Name a colour.", "Name an animal.", "Name a planet."]
        together = self.model.batch(questions, max_tokens=16)
        self.assertEqual([answer.content for answer in together], [self.model.invoke(q, max_tokens=16).content for q in questions])

    def test_a_tool_that_must_be_called(self):
        question = HumanMessage("What will the weather in Paris be for the next 3 days?")
        called = self.model.bind_tools([weather], tool_choice="weather").invoke([question])
        (call,) = called.tool_calls
        self.assertEqual(call["name"], "weather")
        self.assertIsInstance(call["args"]["city"], str)
        self.assertIsInstance(call["args"]["days"], int)
        self.assertTrue(call["id"])
        # The loop goes on: the call and its result are part of the next prompt.
        result = ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"])
        self.assertIsInstance(self.model.bind_tools([weather]).invoke([question, called, result], max_tokens=32), AIMessage)

    def test_a_streamed_tool_call_joins_to_the_whole_one(self):
        model = self.model.bind_tools([weather], tool_choice="weather")
        question = "What will the weather in Oslo be for 2 days?"
        total = None
        for chunk in model.stream(question):
            total = chunk if total is None else total + chunk
        strip = lambda calls: [(call["name"], call["args"]) for call in calls]
        self.assertEqual(strip(total.tool_calls), strip(model.invoke(question).tool_calls))

    def test_structured_output(self):
        for method in ("json_schema", "function_calling"):
            with self.subTest(method):
                city = self.model.with_structured_output(City, method=method).invoke("Tell me about Paris.")
                self.assertIsInstance(city, City)


class Embeddings(unittest.TestCase):
    def test_documents_and_a_query(self):
        with Server(os.environ["GODWIT_MINILM"]) as server:
            embeddings = OpenAIEmbeddings(
                base_url=f"http://127.0.0.1:{server.port}/v1", api_key="unused", model="default", check_embedding_ctx_length=False
            )
            cat, dog, car = embeddings.embed_documents(["a cat", "a dog", "a car engine"])
            query = embeddings.embed_query("a cat")
            self.assertEqual(query, cat, "alone as in a batch")
            product = lambda a, b: sum(x * y for x, y in zip(a, b))
            self.assertGreater(product(query, dog), product(query, car))


if __name__ == "__main__":
    unittest.main()
