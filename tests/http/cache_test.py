"""What answers over HTTP say of the prompt cache. The tiny models run in reference arithmetic, where a repeated prompt is
found up to its last token."""

import unittest

from server import Server, chat

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def cached(answer: dict) -> int:
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


class Usage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("random", "--prompt-cache", "64M")

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def test_chats_whole_and_streamed(self):
        body = chat("chats", max_tokens=5, temperature=0)
        first, second = self.server.post(CHAT, body), self.server.post(CHAT, body)
        self.assertEqual(cached(first), 0)
        self.assertEqual(cached(second), second["usage"]["prompt_tokens"] - 1)
        self.assertEqual(second["timings"]["cache_n"], cached(second))
        self.assertEqual(second["timings"]["prompt_n"], 1)
        self.assertEqual(second["choices"], first["choices"])
        chunks = self.server.stream(CHAT, body | {"stream_options": {"include_usage": True}})
        self.assertEqual(chunks[-1]["usage"], second["usage"])

    def test_completions_whole_and_streamed(self):
        body = {"prompt": "completions", "max_tokens": 5, "temperature": 0}
        first, second = self.server.post(COMPLETIONS, body), self.server.post(COMPLETIONS, body)
        self.assertEqual((cached(first), cached(second)), (0, len("completions") - 1))
        self.assertEqual(second["choices"], first["choices"])
        chunks = self.server.stream(COMPLETIONS, body | {"stream_options": {"include_usage": True}})
        self.assertEqual(chunks[-1]["usage"], second["usage"])

    def test_further_choices_of_a_prompt_are_not_counted(self):
        answer = self.server.post(CHAT, chat("choices", max_tokens=3, n=3, seed=4))
        self.assertEqual(cached(answer), 0, "all of it was computed for this request")

    def test_scoring_a_prompt_is_past_the_cache(self):
        body = {"prompt": "scored", "max_tokens": 0, "echo": True, "logprobs": 2}
        first = self.server.post(COMPLETIONS, body)
        self.server.post(COMPLETIONS, {"prompt": "scored", "max_tokens": 2, "temperature": 0})
        second = self.server.post(COMPLETIONS, body)
        self.assertEqual(second["choices"], first["choices"])
        self.assertEqual(cached(second), 0)


class Off(unittest.TestCase):
    def test_nothing_is_found_without_a_cache(self):
        with Server("random", "--prompt-cache", "off") as server:
            body = chat("x", max_tokens=2, temperature=0)
            self.assertEqual([cached(server.post(CHAT, body)) for _ in range(2)], [0, 0])


if __name__ == "__main__":
    unittest.main()
