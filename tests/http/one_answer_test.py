"""One prompt, one answer, over HTTP: the same text and log-probabilities alone, again, in another order, beside others,
behind a prefix found in the cache, whole or streamed. The model is SmolLM2 in native arithmetic."""

import concurrent.futures
import os
import unittest

from known_requests import REQUESTS, streamed, whole
from server import Server

MODEL = os.environ["GODWIT_SMOLLM2_GGUF"]
OTHERS = 20


class OneAnswer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Each alone, with nothing to be found and nobody beside it.
        with Server(MODEL, "--prompt-cache", "off") as server:
            cls.alone = [whole(server, request) for request in REQUESTS]
        cls.server = cls.enterClassContext(Server(MODEL, "--prompt-cache", "64M"))

    def check(self, index: int, answer, how: str):
        self.assertEqual(answer, self.alone[index], f"request {index} {how}")

    def test_the_answers_are_worth_comparing(self):
        self.assertTrue(all(len(text) > 0 or finish == "stop" for choices in self.alone for text, _, finish in choices))
        texts = [choices[0][0] for choices in self.alone]
        self.assertGreater(len(set(texts)), len(texts) - 2, "the requests hardly differ")
        first, second = self.alone[4]
        self.assertNotEqual(first, second, "two choices of one request")

    def test_once_again_and_backwards(self):
        for index in [*range(len(REQUESTS)), *reversed(range(len(REQUESTS)))]:
            self.check(index, whole(self.server, REQUESTS[index]), "one after another")

    def test_streamed(self):
        for index, request in enumerate(REQUESTS):
            self.check(index, streamed(self.server, request), "streamed")

    def test_beside_others(self):
        with concurrent.futures.ThreadPoolExecutor(OTHERS + 1) as threads:
            asks = [whole if turn % 2 else streamed for turn in range(3 * OTHERS)]
            order = [7 * turn % len(REQUESTS) for turn in range(len(asks))]
            answers = [threads.submit(ask, self.server, REQUESTS[index]) for ask, index in zip(asks, order)]
            for index, answer in zip(order, answers):
                self.check(index, answer.result(), f"beside {OTHERS} others")


if __name__ == "__main__":
    unittest.main()
