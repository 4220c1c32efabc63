"""Many clients at once for a while: mixed lengths, clients that hang up, bodies that are none. Every answer that comes whole is
the one that the request gets alone; no row is left behind; memory stays flat.

GODWIT_SOAK_SECONDS says how long (30); GODWIT_SOAK_SEED repeats a run."""

import http.client
import json
import os
import random
import threading
import time
import unittest

from known_requests import REQUESTS, streamed, whole
from server import Server, raw_post, reset

MODEL = os.environ["GODWIT_SMOLLM2_GGUF"]
SECONDS = float(os.environ.get("GODWIT_SOAK_SECONDS", "30"))
SEED = int(os.environ.get("GODWIT_SOAK_SEED", time.time_ns() % 2**32))
CLIENTS = 32
BAD_BODIES = [b"", b"{", b"[]", b"\xff", b'{"messages": 5}', b'{"messages": [{"role": "user", "content": "x"}], "temperature": -1}']
GROWTH = 0.02  # of resident memory between the first half, in which caches fill, and the end
# Half a minute is too short for that bound, most of all on a slow machine: from the first answer on the heap grows by about 80 MB, in
# steps of some 10 MB (its arenas, the working memory of the largest step), the last of them after a minute or more, and then no more.
# A row that is left behind holds 46 kB a token, and one of ten hang-ups would show even so; less is for the long run to find.
STEPS = 96 << 20 if SECONDS < 300 else 0


class Client(threading.Thread):
    """One client that does something else each time, until the end."""

    def __init__(self, server: Server, alone: list, end: float, seed: int):
        super().__init__()
        self.server, self.alone, self.end, self.random = server, alone, end, random.Random(seed)
        self.done = {"whole": 0, "streamed": 0, "hung_up": 0, "bad": 0, "busy": 0}
        self.problem: BaseException | None = None

    def run(self):
        try:
            while time.monotonic() < self.end:
                self.random.choices([self.compare, self.hang_up, self.send_nonsense], [6, 2, 1])[0]()
        except BaseException as problem:  # reported by the test
            self.problem = problem

    def compare(self):
        index = self.random.randrange(len(REQUESTS))
        ask = self.random.choice([whole, streamed])
        try:
            answer = ask(self.server, REQUESTS[index])
        except AssertionError as refused:
            if refused.args and refused.args[0][0] == 429:  # the queue is full: come back later
                self.done["busy"] += 1
                return time.sleep(0.2)
            raise
        assert answer == self.alone[index], f"request {index}: {answer} is not {self.alone[index]}"
        self.done[ask.__name__] += 1

    def hang_up(self):
        path, body = self.random.choice(REQUESTS)
        connection = self.server.socket()
        body = body | {"max_tokens": 400, "stream": self.random.random() < 0.7}
        connection.sendall(raw_post(path, body)[: self.random.choice([60, 10**6, 10**6, 10**6])])
        time.sleep(self.random.random() * 0.5)
        reset(connection)
        self.done["hung_up"] += 1

    def send_nonsense(self):
        status, _, raw = self.server.ask("POST", self.random.choice(REQUESTS)[0], self.random.choice(BAD_BODIES))
        assert status == 400 and "error" in json.loads(raw), (status, raw)
        self.done["bad"] += 1


class Soak(unittest.TestCase):
    def test_many_clients(self):
        print(f"GODWIT_SOAK_SEED={SEED}", flush=True)
        with Server(MODEL, "--prompt-cache", "16M") as server:
            alone = [whole(server, request) for request in REQUESTS]
            end = time.monotonic() + SECONDS
            clients = [Client(server, alone, end, SEED + i) for i in range(CLIENTS)]
            for client in clients:
                client.start()
            most_before = 0
            while time.monotonic() < end:
                if time.monotonic() < end - SECONDS / 2:
                    most_before = max(most_before, server.resident_bytes())
                time.sleep(0.1)
            for client in clients:
                client.join(120)
            self.assertFalse(any(client.is_alive() for client in clients), "a client still waits: a row is stuck")
            problems = [client.problem for client in clients if client.problem]
            self.assertEqual(problems, [])
            done = {key: sum(client.done[key] for client in clients) for key in clients[0].done}
            print(done, flush=True)
            for key in ("whole", "streamed", "hung_up", "bad"):
                self.assertGreater(done[key], 0, key)
            self.check_nothing_is_left(server)
            self.assertLess(server.resident_bytes() - most_before, max(GROWTH * most_before, STEPS), "memory grows")
            self.assertEqual([whole(server, request) for request in REQUESTS], alone)

    def check_nothing_is_left(self, server: Server):
        """No row runs or waits once all have left; those that hung up end within a step."""
        stats = {}
        for _ in range(100):
            stats = json.loads(server.ask("GET", "/stats")[2])["models"][0]["engine"]
            if stats["rows_running"] == stats["rows_waiting"] == stats["rows_paused"] == 0:
                return
            time.sleep(0.1)
        self.fail(f"rows are left: {stats}")


if __name__ == "__main__":
    unittest.main()
