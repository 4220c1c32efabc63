"""What goes over the wire: bodies, limits, methods, headers, wrong input of every kind."""

import json
import re
import socket
import unittest

from server import Server, chat, exchange, parse_events, raw_post

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def read_all(connection: socket.socket) -> bytes:
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data


def read_status(connection: socket.socket) -> int:
    with connection.makefile("rb") as file:
        return int(file.readline().split()[1])


class Wire(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server("random", "--api-key", "sk-secret"))

    KEY = {"Authorization": "Bearer sk-secret"}

    def ask(self, method, path, body=None, headers=None):
        return self.server.ask(method, path, body, self.KEY | (headers or {}))

    def test_bodies_that_are_no_object_leave_the_connection_usable(self):
        bodies = [b"{", b"[]", b'"x"', b"", b'{"messages": "\xff"}', b"[" * 10_000, b'{"a":NaN}', b'{"a":1e400}']
        for path in (CHAT, COMPLETIONS, "/chat/completions", "/completions"):
            connection = self.server.connect()
            for body in bodies:
                status, headers, raw = exchange(connection, "POST", path, body, self.KEY)
                error = json.loads(raw)["error"]
                self.assertEqual((status, set(error)), (400, {"message", "type", "param", "code"}), body[:20])
                self.assertEqual(error["type"], "invalid_request_error")
                self.assertEqual(headers["connection"], "keep-alive")
            self.assertEqual(exchange(connection, "GET", "/v1/models", headers=self.KEY)[0], 200)
            connection.close()

    def test_a_body_in_chunks_of_one_byte_equals_one_with_a_length(self):
        body = json.dumps(chat("héllo", seed=1, max_tokens=6)).encode()
        want = json.loads(self.ask("POST", CHAT, body)[2])["choices"]
        connection = self.server.connect()
        pieces = (body[i : i + 1] for i in range(len(body)))
        connection.request("POST", CHAT, pieces, self.KEY, encode_chunked=True)
        self.assertEqual(json.loads(connection.getresponse().read())["choices"], want)
        connection.close()

    def test_a_byte_order_mark_and_form_content_types_are_tolerated(self):
        body = b"\xef\xbb\xbf" + json.dumps(chat(max_tokens=1)).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        self.assertEqual(self.ask("POST", CHAT, body, headers)[0], 200)

    def test_streams_are_strict_events_however_they_are_cut(self):
        body = chat(seed=1, max_tokens=20, stream=True, stream_options={"include_usage": True})
        with self.server.socket() as connection:
            connection.sendall(raw_post(CHAT, body, "Authorization: Bearer sk-secret\r\nConnection: close\r\n"))
            data = b""
            while piece := connection.recv(1):  # the smallest cuts there are
                data += piece
        head, _, rest = data.partition(b"\r\n\r\n")
        self.assertIn(b"Transfer-Encoding: chunked", head)
        payload = b""
        while True:
            size, _, rest = rest.partition(b"\r\n")
            count = int(size, 16)
            payload, rest = payload + rest[:count], rest[count:]
            self.assertTrue(rest.startswith(b"\r\n"))
            rest = rest[2:]
            if count == 0:
                break
        self.assertEqual(rest, b"")
        events = parse_events(payload)
        self.assertEqual(events[-1], "[DONE]")
        for event in events[:-1]:
            self.assertIsInstance(json.loads(event), dict)

    def test_http_1_0_streams_up_to_the_end_of_the_connection(self):
        payload = json.dumps(chat(max_tokens=4, stream=True)).encode()
        head = f"POST {CHAT} HTTP/1.0\r\nAuthorization: Bearer sk-secret\r\nContent-Length: {len(payload)}\r\n\r\n"
        with self.server.socket() as connection:
            connection.sendall(head.encode() + payload)
            head, _, rest = read_all(connection).partition(b"\r\n\r\n")
        self.assertNotIn(b"chunked", head)
        self.assertEqual(parse_events(rest)[-1], "[DONE]")

    def test_expectations(self):
        payload = json.dumps(chat(max_tokens=1)).encode()
        head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sk-secret\r\nContent-Length: {len(payload)}\r\n"
        with self.server.socket() as connection:
            connection.sendall((head + "Expect: 100-continue\r\n\r\n").encode())
            self.assertEqual(connection.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            connection.sendall(payload)
            self.assertEqual(read_status(connection), 200)
        with self.server.socket() as connection:
            connection.sendall((head + "Expect: tea\r\n\r\n").encode() + payload)
            self.assertEqual(read_status(connection), 417)

    def test_limits_of_header_and_body(self):
        with self.server.socket() as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * (64 * 1024 + 1) + b"\r\n\r\n")
            self.assertEqual(read_status(connection), 431)
        with self.server.socket() as connection:  # told from the length alone, before any byte of the body
            connection.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {(32 << 20) + 1}\r\n\r\n".encode())
            self.assertEqual(read_status(connection), 413)
        with self.server.socket() as connection:
            connection.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
            piece = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
            for _ in range(33):
                connection.sendall(piece)
            self.assertEqual(read_status(connection), 413)
        big = json.dumps(chat("x" * (32 << 20 >> 1), max_tokens=1)).encode()
        self.assertEqual(self.ask("POST", CHAT, big)[0], 400, "within the limit, though past the context")

    def test_what_is_not_http_is_a_bad_request(self):
        for text in (b"hello\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /health HTTP/1.1\r\nbad header\r\n\r\n"):
            with self.server.socket() as connection:
                connection.sendall(text)
                self.assertIn(b" 400 ", read_all(connection).partition(b"\r\n")[0], text)
        self.assertEqual(self.ask("GET", "/health")[0], 200)

    def test_requests_that_leave_open_where_they_end_are_refused_and_the_connection_closed(self):
        """What follows such a head is not read as a request: one answer, then the end."""
        smuggled = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        chunks = b"5\r\nhello\r\n0\r\n\r\n"
        post = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\n".encode()
        heads = [
            b"Transfer-Encoding: xchunked\r\n", b"Transfer-Encoding: chunked, chunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n",
            b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
            b"Content-Length: 3\r\nContent-Length: 4\r\n", b"Content-Length: -1\r\n", b"Content-Length: 18446744073709551617\r\n",
            b"Host: evil.example\r\nContent-Length: 2\r\n",
        ]
        for head in heads:
            with self.server.socket() as connection:
                connection.sendall(post + head + b"\r\n" + chunks + smuggled)
                statuses = re.findall(rb"HTTP/1\.1 (\d+)", read_all(connection))
            self.assertEqual(statuses, [b"400"], head)
        for sizes in (b"FFFFFFFFFFFFFFFF", b"1FFFFFFFFFFFFFFFF", b"-1", b"zz", b"0x5"):
            with self.server.socket() as connection:
                connection.sendall(post + b"Transfer-Encoding: chunked\r\n\r\n" + sizes + b"\r\nabc\r\n0\r\n\r\n" + smuggled)
                statuses = re.findall(rb"HTTP/1\.1 (\d+)", read_all(connection))
            self.assertIn(statuses, ([b"400"], [b"413"]), sizes)

    def test_endless_chunk_headers_and_trailers_are_cut_off(self):
        before = self.server.resident_bytes()
        head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        for endless in (b"1;" + b"a" * (16 << 20), b"0\r\n" + b"X: yyyyyyyyyyyyyyyy\r\n" * 500_000):
            with self.server.socket() as connection:
                try:
                    connection.sendall(head + endless)
                except OSError:  # the answer is out before all of it was read
                    pass
                self.assertEqual(read_status(connection), 431)
        self.assertLess(self.server.resident_bytes() - before, 8 << 20)
        self.assertEqual(self.ask("GET", "/health")[0], 200)

    def test_an_object_of_many_keys_takes_no_quadratic_time(self):
        many = {str(key): key for key in range(300_000)}
        for body in (chat(logit_bias=many), chat(metadata=many, max_tokens=1), chat(chat_template_kwargs=many, max_tokens=1)):
            self.assertIn(self.server.ask("POST", CHAT, body, self.KEY, timeout=30)[0], (200, 400))

    def test_methods_paths_and_head(self):
        status, headers, _ = self.ask("GET", CHAT)
        self.assertEqual((status, headers["allow"]), (405, "POST, OPTIONS"))
        self.assertEqual(self.ask("DELETE", "/v1/models")[0], 405)
        self.assertEqual(self.ask("GET", "/v1/nothing")[0], 404)
        self.assertEqual(self.ask("GET", "/models/?a=b")[0], 200)
        status, headers, raw = self.ask("HEAD", "/v1/models")
        self.assertEqual((status, raw), (200, b""))
        self.assertEqual(int(headers["content-length"]), len(self.ask("GET", "/v1/models")[2]))
        for path in ("/health", "/v1/health", "/livez", "/readyz"):
            self.assertEqual(self.server.ask("GET", path)[0], 200, path)

    def test_requests_in_a_row_are_answered_in_order(self):
        requests = b"".join(f"GET /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in ("health", "nothing"))
        with self.server.socket() as connection:
            connection.sendall(requests + b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            data = read_all(connection)
        self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", data), [b"200", b"404", b"200"])

    def test_request_ids_come_back(self):
        self.assertEqual(self.ask("GET", "/health", headers={"X-Request-Id": "abc"})[1]["x-request-id"], "abc")
        self.assertTrue(self.ask("GET", "/health")[1]["x-request-id"].startswith("req_"))

    def test_keys(self):
        def status(path, **headers):
            return self.server.ask("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})[0]

        self.assertEqual(status("/v1/models"), 401)
        self.assertEqual(status("/v1/models", Authorization="Bearer sk-secret"), 200)
        self.assertEqual(status("/v1/models", x_api_key="sk-secret"), 200)
        self.assertEqual(status("/v1/models", api_key="sk-secret"), 200)
        self.assertEqual(status("/v1/models", Authorization="Bearer sk-secreu"), 401)
        self.assertEqual(status("/health"), 200)

    def test_other_hosts_and_origins(self):
        self.assertEqual(self.ask("GET", "/v1/models", headers={"Host": "evil.example"})[0], 403)
        status, headers, _ = self.ask("POST", CHAT, chat(max_tokens=1), {"Origin": "https://evil.example"})
        self.assertEqual(status, 403)
        self.assertNotIn("access-control-allow-origin", headers)
        status, headers, _ = self.ask("POST", CHAT, chat(max_tokens=1), {"Origin": "http://localhost:3000"})
        self.assertEqual((status, headers["access-control-allow-origin"]), (200, "http://localhost:3000"))
        status, headers, _ = self.server.ask("OPTIONS", CHAT, headers={"Origin": "http://127.0.0.1:1"})
        self.assertEqual((status, headers["access-control-max-age"]), (204, "86400"))

    def test_wrong_types_are_never_a_server_error(self):
        fields = (
            "model max_tokens max_completion_tokens temperature top_p top_k min_p xtc_probability xtc_threshold "
            "repetition_penalty repeat_penalty repeat_last_n presence_penalty frequency_penalty n stop seed logit_bias "
            "logprobs top_logprobs stream stream_options ignore_eos add_generation_prompt reasoning_effort "
            "chat_template_kwargs tools tool_choice response_format echo suffix best_of add_special_tokens"
        ).split()
        values = ["\"x\"", "true", "{}", "[]", "1e400", "-1", "NaN", "0", "1e18", "[[]]", "{\"a\":1}", "\"\\ud800\""]
        connection = self.server.connect()
        for path, start in ((CHAT, '{"messages":[{"role":"user","content":"x"}]'), (COMPLETIONS, '{"prompt":"x"')):
            for field in fields:
                for value in values:
                    # A limit that would run for long is no fault; keep the run short.
                    limit = "" if field.startswith("max_") else ',"max_tokens":1'
                    if field.startswith("max_") and value == "1e18":
                        continue
                    body = f'{start}{limit},"{field}":{value}}}'.encode()
                    status = exchange(connection, "POST", path, body, self.KEY)[0]
                    self.assertIn(status, (200, 400, 404), body)
        connection.close()

    def test_messages_of_wrong_shape_are_never_a_server_error(self):
        for messages in ("null", "{}", "[null]", "[[]]", '[{"role":1}]', '[{"role":"user","content":{}}]',
                         '[{"role":"user","content":[1]}]', '[{"role":"user","content":[{"type":"text"}]}]',
                         '[{"role":"assistant","tool_calls":[{}]}]', '[{"role":"assistant","tool_calls":5}]'):
            status, _, raw = self.ask("POST", CHAT, f'{{"messages":{messages}}}'.encode())
            self.assertEqual(status, 400, messages)
            self.assertIn("messages", json.loads(raw)["error"]["param"])


if __name__ == "__main__":
    unittest.main()
