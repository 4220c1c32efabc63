"""Start, clients that leave, and the end of the server."""

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import threading
import time
import unittest

import server as support
from server import Server, chat, raw_post, reset

CHAT = "/v1/chat/completions"
ENDLESS = chat("x" * 4000, max_tokens=100_000, ignore_eos=True)  # runs for minutes
SOON = 60  # seconds; what is waited for takes a step or two of the engine
ROWS = 16  # that run at once, and requests that may wait for them: the defaults of serve
QUEUE = 64


class Leaving(unittest.TestCase):
    """A request that was left holds its row no longer: the engine tells how many run and wait."""

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server("random"))

    def begin(self, body: dict) -> socket.socket:
        connection = self.server.socket()
        connection.sendall(raw_post(CHAT, body))
        return connection

    def begin_and_run(self, body: dict) -> socket.socket:
        connection = self.begin(body)
        self.server.wait_for_rows("running", 1, SOON)
        return connection

    def assert_all_have_left(self):
        self.server.wait_for_rows("waiting", 0, SOON)
        self.server.wait_for_rows("running", 0, SOON)
        self.assertEqual(self.server.ask("POST", CHAT, chat(max_tokens=1), timeout=SOON)[0], 200)

    def test_a_reset_in_the_prefill_of_a_stream(self):
        connection = self.begin_and_run(ENDLESS | {"stream": True})
        reset(connection)
        self.assert_all_have_left()

    def test_a_reset_in_the_middle_of_a_stream_and_memory_comes_back(self):
        self.server.ask("POST", CHAT, chat("x" * 4000, max_tokens=1))
        before = self.server.resident_bytes()
        for _ in range(5):
            connection = self.begin_and_run(ENDLESS | {"stream": True})
            support.read_until(connection, b"data: ")
            reset(connection)
            self.assert_all_have_left()
        # One row of 4,000 tokens holds 2 layers x 2 x 32 floats a token: 2 MB. Five leaked ones and the arrays of
        # their steps would show well above the allocator's noise.
        self.assertLess(self.server.resident_bytes() - before, 64 << 20)

    def test_a_reset_and_an_orderly_close_while_a_whole_answer_is_made(self):
        for leave in (reset, lambda connection: connection.close()):
            connection = self.begin_and_run(ENDLESS)
            leave(connection)
            self.assert_all_have_left()

    def test_a_request_that_leaves_the_queue_never_starts(self):
        running = [self.begin(ENDLESS | {"stream": True}) for _ in range(ROWS)]
        self.server.wait_for_rows("running", ROWS, SOON)
        queued = [self.begin(ENDLESS | {"stream": number == 0}) for number in range(2)]
        self.server.wait_for_rows("waiting", 2, SOON)
        for connection in queued:
            reset(connection)
        self.server.wait_for_rows("waiting", 0, SOON)
        self.assertEqual(self.server.rows("running"), ROWS)
        for connection in running:
            reset(connection)
        self.assert_all_have_left()

    def test_a_stream_goes_on_for_a_client_that_only_closed_its_sending_side(self):
        connection = self.begin(chat(max_tokens=200, ignore_eos=True, stream=True))
        connection.shutdown(socket.SHUT_WR)
        data = b""
        while piece := connection.recv(65536):
            data += piece
        connection.close()
        self.assertIn(b"[DONE]", data)

    def test_other_routes_answer_while_the_engine_works(self):
        connection = self.begin_and_run(ENDLESS | {"stream": True})
        for path in ("/health", "/readyz", "/v1/models"):
            self.assertEqual(self.server.ask("GET", path)[0], 200)
        self.assertEqual(self.server.rows("running"), 1)
        reset(connection)
        self.assert_all_have_left()

    def test_a_full_queue_says_when_to_come_back(self):
        held = [self.begin(ENDLESS) for _ in range(ROWS)]
        self.server.wait_for_rows("running", ROWS, SOON)
        held += [self.begin(ENDLESS) for _ in range(QUEUE)]
        self.server.wait_for_rows("waiting", QUEUE, SOON)
        status, headers, raw = self.server.ask("POST", CHAT, chat(max_tokens=1), timeout=SOON)
        self.assertEqual((status, headers["retry-after"]), (429, "1"))
        self.assertEqual(json.loads(raw)["error"]["code"], "queue_full")
        for connection in held:
            reset(connection)
        self.assert_all_have_left()


class HalfClosed(unittest.TestCase):
    def test_whole_answers_for_half_closed_clients_on_request(self):
        with Server("random", "--keep-half-closed") as server, server.socket() as connection:
            connection.sendall(raw_post(CHAT, chat(max_tokens=200, ignore_eos=True), "Connection: close\r\n"))
            connection.shutdown(socket.SHUT_WR)
            self.assertTrue(connection.recv(100).startswith(b"HTTP/1.1 200 OK"))


class Ending(unittest.TestCase):
    def test_one_line_says_where_what_and_how_long(self):
        with Server("chain", "--ctx", "512") as server:
            lines = [line for line in server.messages().splitlines() if line.startswith("godwit: serving")]
            self.assertEqual(len(lines), 1)
            for part in ("chain", f"http://127.0.0.1:{server.port}", "512"):
                self.assertIn(part, lines[0])

    def test_a_port_in_use_is_named(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            done = subprocess.run(
                [support.BINARY, "serve", "-m", str(support.MODELS / "chain"), "--port", str(port)],
                capture_output=True, text=True, timeout=60,
            )
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"127.0.0.1:{port}", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_flags_that_make_no_sense_are_wrong_usage(self):
        for flags in (["--port", "x"], ["--port", "70000"], ["--math", "fast"], ["--ctx", "-1"], ["--nonsense"]):
            done = subprocess.run([support.BINARY, "serve", *flags], capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 2, flags)

    def test_a_signal_lets_answers_finish_and_refuses_new_ones(self):
        with Server("random") as server:
            connection = server.socket()
            connection.sendall(raw_post(CHAT, chat(max_tokens=3000, ignore_eos=True, stream=True)))
            first = support.read_until(connection, b"data: ")  # it is in the queue no more
            idle = server.socket()  # waits for nothing in particular
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.2)
            status, headers, _ = server.ask("POST", CHAT, chat(max_tokens=1))
            self.assertEqual((status, headers["connection"]), (503, "close"))
            self.assertEqual(server.ask("GET", "/livez")[0], 200)
            self.assertEqual([server.ask("GET", path)[0] for path in ("/health", "/readyz")], [503, 503])
            data = first
            while piece := connection.recv(65536):
                data += piece
            self.assertIn(b"[DONE]", data)
            self.assertEqual(server.process.wait(30), 0)
            self.assertFalse(server.port_file.exists())
            connection.close()
            idle.close()

    def test_answers_that_take_too_long_end_with_an_error(self):
        with Server("random", "--drain-timeout", "0.5") as server:
            connection = server.socket()
            connection.sendall(raw_post(CHAT, ENDLESS | {"stream": True}))
            data = connection.recv(64)
            server.process.send_signal(signal.SIGINT)
            while piece := connection.recv(65536):
                data += piece
            connection.close()
            self.assertEqual(server.process.wait(30), 0)
            self.assertNotIn(b"[DONE]", data)
            self.assertNotIn(b'"finish_reason":"stop"', data)
            self.assertIn(b'{"error":{"message":"the server is shutting down"', data)
            self.assertTrue(data.endswith(b"0\r\n\r\n"))

    def test_peers_that_stand_still_do_not_hold_up_the_end(self):
        """One in the middle of a body, one that goes on byte by byte, one that takes none of its answers."""
        with Server("random") as server:
            half = raw_post(CHAT, chat("x" * 1000))[:-500]
            held = [server.socket(), server.socket()]
            for connection in held:
                connection.sendall(half)
            deaf = socket.socket()
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            deaf.connect(("127.0.0.1", server.port))
            deaf.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:  # until the server takes no more, since nobody takes its answers
                    deaf.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
            server.process.send_signal(signal.SIGTERM)
            for _ in range(600):
                if server.process.poll() is not None:
                    break
                with contextlib.suppress(OSError):
                    held[1].send(b"x")
                time.sleep(0.05)
            self.assertEqual(server.process.poll(), 0)
            for connection in (*held, deaf):
                connection.close()

    def test_a_second_signal_does_not_wait(self):
        with Server("random") as server:
            connection = server.socket()
            connection.sendall(raw_post(CHAT, ENDLESS | {"stream": True}))
            connection.recv(64)
            server.process.send_signal(signal.SIGINT)
            time.sleep(0.2)
            self.assertIsNone(server.process.poll())
            server.process.send_signal(signal.SIGINT)
            self.assertEqual(server.process.wait(5), 130)
            connection.close()

    def test_many_connections_at_once(self):
        with Server("chain") as server:
            failures = []

            def client():
                try:
                    answer = server.post(CHAT, chat(temperature=0))
                    assert answer["choices"][0]["message"]["content"] == "a😸b作c"
                except Exception as error:  # noqa: BLE001 - reported by the main thread
                    failures.append(error)

            threads = [threading.Thread(target=client) for _ in range(40)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])

    def test_connections_beyond_the_open_files_of_the_process_end_and_nothing_else_does(self):
        """Each takes several descriptors, so every number of free ones has its own place to fail at."""
        with Server("chain") as server:
            process = server.process.pid
            limits = resource.prlimit(process, resource.RLIMIT_NOFILE)
            for free in range(1, 9):
                used = max(int(name) for name in os.listdir(f"/proc/{process}/fd"))
                resource.prlimit(process, resource.RLIMIT_NOFILE, (used + 1 + free, limits[1]))
                held = [server.socket() for _ in range(6)]
                time.sleep(0.05)
                for connection in held:
                    connection.close()
                resource.prlimit(process, resource.RLIMIT_NOFILE, limits)
                self.assertEqual(server.ask("GET", "/health")[0], 200, free)
            self.assertIn("Too many open files", server.messages())


if __name__ == "__main__":
    unittest.main()
