"""Official packages that ask for embeddings: openai, langchain-openai and ollama."""

import os
import unittest

import numpy as np
import ollama
import openai
from langchain_openai import OpenAIEmbeddings

from server import Server

MINILM = os.environ["GODWIT_MINILM"]
TEXTS = ["a cat", "the dog of the house"]


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(MINILM))
        cls.url = f"http://127.0.0.1:{cls.server.port}"
        cls.want = np.array(
            [item["embedding"] for item in cls.server.post("/v1/embeddings", {"input": TEXTS})["data"]], dtype=np.float32
        )

    def same(self, vectors):
        self.assertEqual(np.array(vectors, dtype=np.float32).tobytes(), self.want.tobytes())

    def test_openai_asks_for_base64_and_gets_the_same_numbers(self):
        with openai.OpenAI(base_url=self.url + "/v1", api_key="unused", max_retries=0) as client:
            answer = client.embeddings.create(model="default", input=TEXTS)
            self.same([item.embedding for item in answer.data])
            self.same([item.embedding for item in client.embeddings.create(model="default", input=TEXTS, encoding_format="float").data])
            with self.assertRaises(openai.BadRequestError):
                client.embeddings.create(model="default", input="word " * 600)

    def test_langchain(self):
        def client(**fields):
            return OpenAIEmbeddings(base_url=self.url + "/v1", api_key="unused", model="default", max_retries=0, **fields)

        self.same(client(check_embedding_ctx_length=False).embed_documents(TEXTS))

    def test_ollama(self):
        client = ollama.Client(host=self.url)
        self.same(client.embed(model="minilm", input=TEXTS).embeddings)
        self.same([client.embeddings(model="minilm", prompt=text).embedding for text in TEXTS])
        self.assertEqual(list(client.show("minilm").capabilities), ["embedding"])


if __name__ == "__main__":
    unittest.main()
