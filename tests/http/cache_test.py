"""What answers over HTTP say of the prompt cache. The tiny models run in reference arithmetic, where a repeated prompt is
found up to its last token."""

import pathlib
import tempfile
import unittest

from server import Server, chat, raw_post, read_until, wait_for

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

    def test_a_salt_keeps_prompts_apart(self):
        body = chat("salted", max_tokens=2, temperature=0)
        salts = [None, "a", "a", "b", None, "b"]
        answers = [self.server.post(CHAT, body | {"cache_salt": salt}) for salt in salts]
        whole = answers[0]["usage"]["prompt_tokens"] - 1
        self.assertEqual([cached(answer) for answer in answers], [0, 0, whole, 0, whole, whole])

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


class Flush(unittest.TestCase):
    def flush(self, server: Server, **fields) -> int:
        """The bytes of memory that were let go."""
        [flushed] = server.post("/admin/cache/flush", fields)["flushed"]
        self.assertEqual(flushed["model"], "random")
        return flushed["bytes"]

    def test_memory_is_emptied_while_an_answer_is_made(self):
        with Server("random", "--prompt-cache", "64M") as server:
            body = chat("flushed", max_tokens=2, temperature=0)
            first = server.post(CHAT, body)
            with server.socket() as running:
                running.sendall(raw_post(CHAT, chat("flushed", max_tokens=400, ignore_eos=True, stream=True), "Connection: close\r\n"))
                data = read_until(running, b"data: ")
                self.assertGreater(self.flush(server), 0)
                while piece := running.recv(65536):
                    data += piece
                self.assertIn(b"[DONE]", data)
            self.flush(server)
            self.assertEqual(self.flush(server, model="random"), 0)
            again = server.post(CHAT, body)
            self.assertEqual((cached(again), again["choices"]), (0, first["choices"]))
            self.assertGreater(cached(server.post(CHAT, body)), 0)

    def test_the_disk_is_emptied_where_that_is_asked_for(self):
        with tempfile.TemporaryDirectory() as folder, Server("random", "--cache-dir", folder) as server:

            def records() -> int:
                return len(list(pathlib.Path(folder).rglob("*.kv")))

            body = {"prompt": "on disk " * 40, "max_tokens": 2, "temperature": 0}
            server.post(COMPLETIONS, body)
            wait_for(records)

            def found_on_disk() -> int:
                self.flush(server)
                return cached(server.post(COMPLETIONS, body))

            self.assertGreater(wait_for(found_on_disk), 0)  # once the record is whole and in the index
            self.flush(server, disk=True)
            wait_for(lambda: records() == 0)
            self.assertEqual(cached(server.post(COMPLETIONS, body)), 0)
            wait_for(records)


class Off(unittest.TestCase):
    def test_nothing_is_found_without_a_cache(self):
        with Server("random", "--prompt-cache", "off") as server:
            body = chat("x", max_tokens=2, temperature=0)
            self.assertEqual([cached(server.post(CHAT, body)) for _ in range(2)], [0, 0])
            self.assertEqual(server.post("/admin/cache/flush", {}), {"flushed": []})


if __name__ == "__main__":
    unittest.main()
