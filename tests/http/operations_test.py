"""Metrics, logs, keys, TLS, limits, the config file and the service manager."""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import stat
import subprocess
import tempfile
import time
import unittest

import exposition
import server as support
from server import Server, chat, parse_events, raw_post, read_until, wait_for

CHAT = "/v1/chat/completions"
ENDLESS = chat("x" * 100, max_tokens=100_000, ignore_eos=True)
CANARY = "canary-7f3a-prompt"


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server("chain"))

    def scrape(self) -> dict:
        status, headers, raw = self.server.ask("GET", "/metrics")
        self.assertEqual((status, headers["content-type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        return exposition.parse(raw.decode())

    def test_what_is_counted_is_what_was_asked(self):
        before = self.scrape()
        for _ in range(3):
            self.server.post(CHAT, chat(temperature=0))
        self.server.stream(CHAT, chat(temperature=0))
        self.server.post("/v1/completions", {"prompt": ["\n", "\n"], "temperature": 0, "n": 2, "max_tokens": 3})
        self.server.ask("GET", "/v1/nothing")
        self.server.ask("POST", CHAT, b"{")
        after = self.scrape()

        def rose(name, **labels):
            return exposition.value(after, name, **labels) - exposition.value(before, name, **labels)

        self.assertEqual(rose("godwit_requests_total", route="/chat/completions", code="200"), 4)
        self.assertEqual(rose("godwit_requests_total", route="/chat/completions", code="400"), 1)
        self.assertEqual(rose("godwit_requests_total", route="/completions", code="200"), 1)
        self.assertEqual(rose("godwit_requests_total", route="other", code="404"), 1)
        for name in ("time_to_first_token", "e2e_request_latency", "queue", "prefill", "decode"):
            self.assertEqual(rose(f"godwit_{name}_seconds_count", model="chain"), 5, name)
        self.assertEqual(rose("godwit_request_success_total", finish_reason="stop"), 4)
        self.assertEqual(rose("godwit_request_success_total", finish_reason="length"), 4)
        # The answer is ten tokens and an end.
        self.assertEqual(rose("godwit_generation_tokens_total"), 4 * 10 + 4 * 3)
        self.assertEqual(rose("godwit_inter_token_latency_seconds_count"), 4 * 9 + 4 * 2)

    def test_counters_never_fall(self):
        before = self.scrape()
        self.server.post(CHAT, chat(temperature=0))
        after = self.scrape()
        for name, family in before.items():
            for key, value in family["samples"].items():
                if family["type"] != "gauge":
                    self.assertGreaterEqual(after[name]["samples"][key], value, key)

    def test_a_client_that_leaves_is_counted(self):
        with Server("random") as server:
            connection = server.socket()
            connection.sendall(raw_post(CHAT, ENDLESS | {"stream": True}))
            connection.recv(64)
            support.reset(connection)

            def cancelled():
                families = exposition.parse(server.ask("GET", "/metrics")[2].decode())
                return exposition.value(families, "godwit_cancels_total", reason="client") == 1

            wait_for(cancelled, "no cancel was counted")

    def test_it_answers_while_the_engine_works(self):
        with Server("random") as server, server.socket() as connection:
            connection.sendall(raw_post(CHAT, ENDLESS | {"stream": True}))
            connection.recv(64)
            for path in ("/metrics", "/stats", "/health", "/v1/models"):
                self.assertEqual(server.ask("GET", path, timeout=5)[0], 200)

    def test_stats_are_for_people(self):
        stats = json.loads(self.server.ask("GET", "/stats")[2])
        self.assertEqual((stats["status"], stats["models"][0]["id"]), ("ready", "chain"))
        self.assertGreater(stats["resident_bytes"], 1 << 20)


class Logs(unittest.TestCase):
    def test_one_line_for_each_request_and_no_word_of_what_was_said(self):
        with tempfile.TemporaryDirectory() as folder:
            prompts = pathlib.Path(folder) / "prompts"
            key = "sk-very-secret"
            with Server("chain", "--log-format", "json", "--log-level", "debug", "--api-key", key) as server:
                head = {"Authorization": f"Bearer {key}", "X-Request-Id": "mine"}
                server.ask("POST", CHAT, chat(CANARY, temperature=0), head)
                server.ask("POST", CHAT, chat(CANARY, temperature=0, stream=True), head)
                server.ask("POST", f"{CHAT}?api_key={key}", chat(CANARY), {"x-api-key": "sk-wrong-one"})
                server.ask("POST", "/v1/completions", {"prompt": CANARY, "model": "a\ngodwit: error: forged"}, head)
                server.ask("GET", "/v1/nothing", headers=head)
                wait_for(lambda: server.messages().count('"message":"request"') == 5)
                text = server.messages()
            self.assertNotIn(CANARY, text)
            self.assertNotIn("secret", text)
            self.assertNotIn("sk-", text)
            lines = [json.loads(line) for line in text.splitlines()]
            requests = [line for line in lines if line["message"] == "request"]
            # A line is written behind its answer, so those of two connections may change places.
            self.assertEqual(sorted(line["status"] for line in requests), [200, 200, 401, 404, 404])
            requests.sort(key=lambda line: (line["status"], line.get("stream", False)))
            whole, stream = requests[:2]
            self.assertEqual((whole["id"], whole["route"], whole["model"], whole["client"]), ("mine", "/chat/completions", "chain", "127.0.0.1"))
            self.assertEqual((whole["generated_tokens"], whole["finish"], whole["stream"], stream["stream"]), (10, "stop", False, True))
            for field in ("time", "ms", "queue_ms", "prefill_ms", "decode_ms", "prompt_tokens", "cached_tokens"):
                self.assertIn(field, whole)

            with Server("chain", "--log-prompts", str(prompts)) as server:
                server.post(CHAT, chat(CANARY, temperature=0))
                kept = json.loads(wait_for(prompts.read_text))
                self.assertNotIn(CANARY, server.messages())
            self.assertEqual(stat.S_IMODE(prompts.stat().st_mode), 0o600)
            self.assertIn(CANARY, kept["request"])
            self.assertEqual(kept["answers"], ["a😸b作c"])

    def test_no_name_can_begin_a_line(self):
        with tempfile.TemporaryDirectory() as folder:
            evil = pathlib.Path(folder) / "m\ngodwit: error: forged\x1b[31m"
            evil.symlink_to(support.MODELS / "chain")
            with Server(None, "-m", str(evil), "--log-level", "debug") as server:
                server.post(CHAT, chat(temperature=0))
                server.ask("GET", "/v1/%0agodwit:%20error:%20forged")
                wait_for(lambda: "404" in server.messages())
                text = server.messages()
            self.assertNotIn("\x1b", text)
            for line in text.splitlines():
                self.assertRegex(line, "^godwit: ")
                self.assertNotRegex(line, "^godwit: error")


class Dialects(unittest.TestCase):
    """Refusals have the shape of the API whose path it is, also those that no endpoint sees."""

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server("chain", "--max-body", "1000"))

    def check(self, path: str, status: int, raw: bytes):
        body = json.loads(raw)
        if path.startswith("/api"):
            self.assertEqual(list(body), ["error"])
            self.assertIsInstance(body["error"], str)
        elif path.startswith("/v1/messages"):
            self.assertEqual((body["type"], set(body["error"])), ("error", {"type", "message"}))
            self.assertTrue(body["request_id"])
            kinds = {404: "not_found_error", 413: "request_too_large"}
            self.assertEqual(body["error"]["type"], kinds.get(status, "invalid_request_error"))
        else:
            self.assertEqual(set(body["error"]), {"message", "type", "param", "code"})

    def test_paths_and_methods(self):
        for path in ("/v1/nothing", "/nothing", "/v1/messages/nothing/at/all", "/api/nothing"):
            for method in ("GET", "POST", "DELETE"):
                status, _, raw = self.server.ask(method, path, b"{}" if method == "POST" else None)
                self.assertEqual(status, 404, path)
                self.check(path, status, raw)
        status, headers, raw = self.server.ask("PUT", CHAT, b"{}")
        self.assertEqual((status, headers["allow"]), (405, "POST, OPTIONS"))
        self.check(CHAT, status, raw)

    def test_what_the_transport_refuses(self):
        for path in (CHAT, "/v1/messages", "/api/chat"):
            for head, wanted in (("Content-Length: 1001\r\n", 413), (f"X: {'a' * 65536}\r\n", 431),
                                 ("Transfer-Encoding: gzip\r\n", 400), ("Expect: tea\r\nContent-Length: 1\r\n", 417)):
                with self.server.socket() as connection:
                    connection.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: r1\r\n{head}\r\n".encode())
                    response = http.client.HTTPResponse(connection)
                    response.begin()
                    raw = response.read()
                self.assertEqual(response.status, wanted, (path, head[:20]))
                self.assertTrue(response.headers["x-request-id"])
                self.assertEqual(response.headers["connection"], "close")
                self.check(path, wanted, raw)
        text = self.server.ask("GET", "/metrics")[2].decode()
        self.assertIn('godwit_requests_total{route="other",code="413"} 3', text)


class Keys(unittest.TestCase):
    def test_a_file_of_keys_is_read_again_on_sighup(self):
        with tempfile.TemporaryDirectory() as folder:
            keys = pathlib.Path(folder) / "keys"
            keys.write_text("# ours\n\nfirst-key  \r\n  second-key\n")
            with Server("chain", "--api-key-file", str(keys)) as server:

                def status(key, path="/v1/models"):
                    return server.ask("GET", path, headers={"x-api-key": key})[0]

                self.assertEqual([status(key) for key in ("first-key", "second-key", "# ours", "second-kez")], [200, 200, 401, 401])
                for path in ("/metrics", "/stats", "/v1/models"):
                    self.assertEqual(status("", path), 401)
                for path in ("/health", "/livez", "/readyz", "/v1/health"):
                    self.assertEqual(server.ask("GET", path)[0], 200)
                for path in ("/admin/drain", "/admin/models/unload"):
                    self.assertEqual(server.ask("POST", path, {"model": "chain"})[0], 401)
                keys.write_text("third-key\n")
                server.process.send_signal(signal.SIGHUP)
                wait_for(lambda: status("third-key") == 200)
                self.assertEqual(status("first-key"), 401)
                keys.unlink()
                server.process.send_signal(signal.SIGHUP)
                wait_for(lambda: "stay as they were" in server.messages())
                self.assertEqual(status("third-key"), 200)

    def test_files_without_a_key_and_half_a_certificate_are_refused(self):
        with tempfile.NamedTemporaryFile("w") as empty:
            for flags in (["--api-key-file", empty.name], ["--api-key-file", "/nowhere/keys"], ["--ssl-cert-file", "x"],
                          ["--ssl-cert-file", "/nowhere/c", "--ssl-key-file", "/nowhere/k"]):
                done = subprocess.run([support.BINARY, "serve", "-m", str(support.MODELS / "chain"), "--port", "0", *flags],
                                      capture_output=True, text=True, timeout=60)
                self.assertIn(done.returncode, (1, 2), flags)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


class Start(unittest.TestCase):
    def test_a_server_that_is_ready_has_its_model(self):
        with Server("chain") as server:
            support.wait_for(lambda: server.ask("GET", "/readyz")[0] == 200)
            self.assertEqual(server.ask_json("/readyz"), {"status": "ready"})
            self.assertEqual(server.ask_json("/health"), {"status": "ok"})
            self.assertTrue(server.ask_json("/v1/models")["data"][0]["is_loaded"], "without a request")

    def test_a_lazy_server_is_ready_without_a_model(self):
        with Server("chain", "--preload", "none") as server:
            self.assertEqual(server.ask_json("/readyz"), {"status": "ready"})
            self.assertFalse(server.ask_json("/v1/models")["data"][0]["is_loaded"])


class Drain(unittest.TestCase):
    def test_an_admin_can_end_the_server(self):
        with Server("chain") as server:
            self.assertEqual(server.ask("POST", "/admin/drain", b"", {"Origin": "https://evil.example"})[0], 403)
            self.assertEqual(server.ask("GET", "/readyz")[0], 200)
            self.assertEqual(server.ask("POST", "/admin/drain")[0], 202)
            self.assertEqual(server.process.wait(30), 0)

    def test_four_streams_finish_and_new_requests_are_refused(self):
        with Server("random") as server:
            streams = []
            for _ in range(4):
                streams.append(server.socket())
                streams[-1].sendall(raw_post(CHAT, chat(max_tokens=400, ignore_eos=True, stream=True)))
            heads = [read_until(connection, b"data: ") for connection in streams]  # none of them is in the queue
            server.process.send_signal(signal.SIGTERM)
            wait_for(lambda: server.ask("GET", "/readyz")[0] == 503)
            self.assertEqual(server.ask("POST", CHAT, chat(max_tokens=1))[0], 503)
            for connection, data in zip(streams, heads):
                while piece := connection.recv(65536):
                    data += piece
                self.assertTrue(data.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), data[-80:])
                connection.close()
            self.assertEqual(server.process.wait(30), 0)


    def test_what_is_queued_is_refused_at_the_end(self):
        with Server("random", "--max-rows", "1") as server:
            running, queued = server.socket(), server.socket()
            running.sendall(raw_post(CHAT, chat(max_tokens=1500, ignore_eos=True, stream=True)))
            data = read_until(running, b"data: ")
            queued.sendall(raw_post(CHAT, chat(max_tokens=1)))
            wait_for(lambda: server.ask_json("/stats")["models"][0]["engine"]["rows_waiting"] == 1)
            server.process.send_signal(signal.SIGTERM)
            self.assertIn(b" 503 ", read_until(queued, b"\r\n"))
            while piece := running.recv(65536):
                data += piece
            self.assertIn(b"[DONE]", data)
            self.assertEqual(server.process.wait(30), 0)
            running.close()
            queued.close()


class Limits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server("random", "--timeout", "1", "--idle-timeout", "1", "--max-connections", "3"))

    def test_a_request_that_takes_too_long_is_given_up(self):
        status, _, raw = self.server.ask("POST", CHAT, ENDLESS)
        self.assertEqual((status, json.loads(raw)["error"]["code"]), (504, "timeout"))
        status, _, raw = self.server.ask("POST", CHAT, ENDLESS | {"stream": True})
        events = parse_events(raw)
        self.assertEqual((status, json.loads(events[-1])["error"]["code"]), (200, "timeout"))
        self.assertNotIn('"finish_reason":"', events[-2])

    def test_a_silent_connection_is_closed(self):
        with self.server.socket(timeout=20) as connection:
            self.assertEqual(connection.recv(1), b"")

    def test_connections_past_the_limit_are_told_to_come_back(self):
        open_ones = [self.server.socket() for _ in range(3)]
        with self.server.socket() as connection:
            self.assertTrue(connection.recv(100).startswith(b"HTTP/1.1 503 "))
        for connection in open_ones:
            connection.close()
        wait_for(lambda: self.server.ask("GET", "/health")[0] == 200)


def certificate(folder: pathlib.Path, name: str) -> None:
    """A self-signed one for 127.0.0.1, as cert.pem and key.pem."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={name}",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(folder / "key.new"), "-out", str(folder / "cert.new")],
        check=True, capture_output=True)
    (folder / "key.new").rename(folder / "key.pem")
    (folder / "cert.new").rename(folder / "cert.pem")


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        certificate(cls.folder, "first")
        tls = ssl.create_default_context(cafile=str(cls.folder / "cert.pem"))
        flags = ("--ssl-cert-file", str(cls.folder / "cert.pem"), "--ssl-key-file", str(cls.folder / "key.pem"))
        cls.server = cls.enterClassContext(Server("random", *flags, tls=tls))

    def shown(self) -> bytes:
        """The certificate that a new connection gets."""
        return ssl.get_server_certificate(("127.0.0.1", self.server.port)).encode()

    def test_answers_streams_and_connections_that_go_on(self):
        self.assertIn(f"https://127.0.0.1:{self.server.port}", self.server.messages())
        connection = self.server.connect()
        for _ in range(3):
            status, _, raw = support.exchange(connection, "POST", CHAT, chat(max_tokens=3, seed=1))
            self.assertEqual(status, 200)
        connection.close()
        chunks = self.server.stream(CHAT, chat(max_tokens=3, seed=1))
        text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
        self.assertEqual(text, json.loads(raw)["choices"][0]["message"]["content"])

    def test_what_is_no_tls_is_closed_and_a_limit_is_told(self):
        with self.server.socket() as plain:
            plain.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while piece := plain.recv(1000):
                self.assertNotIn(b"HTTP/1.1 200", piece)
        status, _, raw = self.server.ask("POST", CHAT, b"x" * 100, {"Transfer-Encoding": "gzip", "Content-Length": "100"})
        self.assertEqual(status, 400)

    def test_a_client_that_leaves_is_noticed(self):
        for stream in (True, False):
            connection = self.server.connect()
            connection.request("POST", CHAT, json.dumps(ENDLESS | {"stream": stream}).encode())
            time.sleep(0.3)
            connection.sock.close()
            connection.close()
        self.assertEqual(self.server.ask("POST", CHAT, chat(max_tokens=1), timeout=30)[0], 200)

    def test_a_new_certificate_leaves_streams_alone(self):
        old = self.shown()
        connection = self.server.connect()
        connection.request("POST", CHAT, json.dumps(chat(max_tokens=3000, ignore_eos=True, stream=True)).encode())
        response = connection.getresponse()
        first = response.read(64)
        certificate(self.folder, "second")
        self.server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: self.shown() != old)
        self.assertEqual(self.shown(), (self.folder / "cert.pem").read_bytes())
        self.assertEqual(parse_events(first + response.read())[-1], "[DONE]")
        connection.close()
        self.server.tls = ssl.create_default_context(cafile=str(self.folder / "cert.pem"))
        (self.folder / "cert.pem").write_text("broken")
        self.server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "stay as they were" in self.server.messages())
        self.assertEqual(self.server.ask("GET", "/health")[0], 200)


class Config(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def effective(self, *flags, env=None) -> dict[str, tuple[str, str]]:
        done = subprocess.run([support.BINARY, "serve", "--print-config", *flags], capture_output=True, text=True, timeout=60,
                              env=os.environ | {"XDG_CONFIG_HOME": str(self.folder / "home")} | (env or {}))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.messages = done.stderr
        found = re.findall(r"^([\w-]+) = (.*?)  # (.*)$", done.stdout, re.MULTILINE)
        return {key: (value, source) for key, value, source in found}

    def write(self, text: str, name: str = "c.toml") -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def test_flag_then_environment_then_file_then_the_users_file_then_default(self):
        file = self.write("port = 1001\ntimeout = 11\nidle-timeout = 21\n")
        self.write("[serve]\nport = 1\ntimeout = 1\nidle-timeout = 1\ndrain-timeout = 31\n", "home/godwit/config.toml")
        values = self.effective("--config", file, "--port", "1003", env={"GODWIT_PORT": "1002", "GODWIT_TIMEOUT": "12"})
        self.assertEqual(values["port"], ("1003", "flag"))
        self.assertEqual(values["timeout"], ("12", "GODWIT_TIMEOUT"))
        self.assertEqual(values["idle-timeout"], ("21", f"{file}:3"))
        self.assertEqual(values["drain-timeout"], ("31", f"{self.folder}/home/godwit/config.toml:5"))
        self.assertEqual(values["host"], ('"127.0.0.1"', "default"))

    def test_lists_booleans_and_keys_that_are_not_shown(self):
        file = self.write('api-key = ["one-key", "other-key"]\nkeep-half-closed = true\ncors-origins = ["https://a.example"]\n')
        values = self.effective("--config", file)
        self.assertEqual(values["api-key"][0], '["(not shown)", "(not shown)"]')
        self.assertEqual(values["keep-half-closed"][0], "true")
        self.assertEqual(values["cors-origins"][0], '["https://a.example"]')

    def test_what_is_unknown_is_a_warning_with_its_line_and_what_is_wrong_an_error(self):
        self.effective("--config", self.write("port = 1\nprot = 2\n[train]\nx = 1\n"))
        self.assertIn("c.toml:2: there is no setting 'prot'", self.messages)
        self.assertIn("c.toml:3: there is no table 'train'", self.messages)
        for text, line in (("port = \"x\"\n", 1), ("\nport = 70000\n", 2), ("port = 1\nport = 2\n", 2), ("port = \n", 1), ("host = [[1]]\n", 1)):
            done = subprocess.run([support.BINARY, "serve", "--config", self.write(text)], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, text)
            self.assertIn(f"c.toml:{line}", done.stderr, text)
        done = subprocess.run([support.BINARY, "serve", "--port", "0"], capture_output=True, text=True, timeout=60, env=os.environ | {"GODWIT_TIMEOUT": "-1"})
        self.assertEqual(done.returncode, 2)
        self.assertIn("GODWIT_TIMEOUT", done.stderr)


class Notify(unittest.TestCase):
    def test_systemd_is_told_when_a_first_token_is_possible_and_when_the_end_comes(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            path = f"{folder}/notify"
            manager.bind(path)
            manager.settimeout(60)
            env = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"}
            with Server("chain", env=env) as server:
                said = []
                while "READY=1" not in said:
                    said += manager.recv(1000).decode().split("\n")
                self.assertTrue(said[0].startswith("STATUS=loading chain"), said)
                self.assertEqual(server.post(CHAT, chat(temperature=0, max_tokens=1))["usage"]["completion_tokens"], 1)
                beats = [manager.recv(1000) for _ in range(3)]
                self.assertIn(b"WATCHDOG=1", beats)
                server.process.send_signal(signal.SIGTERM)
                while not (last := manager.recv(1000)).startswith(b"STOPPING=1"):
                    self.assertTrue(last.startswith((b"WATCHDOG=1", b"STATUS=")), last)
                self.assertEqual(server.process.wait(30), 0)


if __name__ == "__main__":
    unittest.main()
