"""A real godwit server for a test, and the strict reader of its streams."""

import http.client
import json
import os
import pathlib
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import time

BINARY = os.environ["GODWIT_BINARY"]
MODELS = pathlib.Path(os.environ["GODWIT_HTTP_MODELS"])
START_SECONDS = 60


class Server:
    """godwit serve on a free port of 127.0.0.1; a context manager."""

    def __init__(self, model: str | None, *flags: str, env: dict | None = None, tls: ssl.SSLContext | None = None):
        """Without a model the flags say which."""
        self.model = model
        self.tls = tls
        self.folder = tempfile.TemporaryDirectory()
        self.port_file = pathlib.Path(self.folder.name) / "port"
        self.log = open(pathlib.Path(self.folder.name) / "log", "w+")
        named = ["-m", str(MODELS / model)] if model else []
        arguments = [BINARY, "serve", *named, "--port", "0", "--port-file", str(self.port_file), *flags]
        self.process = subprocess.Popen(arguments, stderr=self.log, stdout=subprocess.PIPE, env=os.environ | (env or {}))
        self.port = self._wait_for_port()

    def _wait_for_port(self) -> int:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            if self.port_file.exists():
                return int(self.port_file.read_text())
            time.sleep(0.02)
        self.process.kill()
        raise RuntimeError("the server did not start:\n" + self.messages())

    def messages(self) -> str:
        self.log.flush()
        return pathlib.Path(self.log.name).read_text()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()
        self.folder.cleanup()

    def connect(self, timeout: float = 120) -> http.client.HTTPConnection:
        if self.tls:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=self.tls)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def socket(self, timeout: float = 60) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def ask(self, method: str, path: str, body=None, headers: dict | None = None, timeout: float = 120):
        """(status, headers, body bytes); a body that is not bytes is sent as JSON."""
        connection = self.connect(timeout)
        try:
            return exchange(connection, method, path, body, headers)
        finally:
            connection.close()

    def post(self, path: str, body, timeout: float = 120) -> dict:
        """The JSON of a successful POST."""
        status, _, raw = self.ask("POST", path, body, timeout=timeout)
        assert status == 200, (status, raw)
        return json.loads(raw)

    def ask_json(self, path: str) -> dict:
        """The JSON of a successful GET."""
        status, _, raw = self.ask("GET", path)
        assert status == 200, (status, raw)
        return json.loads(raw)

    def rows(self, kind: str) -> int:
        """How many requests the engine of the first model holds: kind is running, waiting or paused."""
        return self.ask_json("/stats")["models"][0]["engine"][f"rows_{kind}"]

    def wait_for_rows(self, kind: str, wanted: int, seconds: float = 60):
        """Until there are as many."""
        end = time.monotonic() + seconds
        while (held := self.rows(kind)) != wanted:
            assert time.monotonic() < end, f"{held} rows are {kind}, not {wanted}"
            time.sleep(0.02)

    def stream(self, path: str, body: dict) -> list[dict]:
        """The chunks of a successful stream, [DONE] checked and left out."""
        status, headers, raw = self.ask("POST", path, body | {"stream": True})
        assert status == 200, (status, raw)
        assert headers["content-type"] == "text/event-stream; charset=utf-8", headers
        events = parse_events(raw)
        assert events[-1] == "[DONE]", events[-1]
        return [json.loads(event) for event in events[:-1]]

    def resident_bytes(self) -> int:
        fields = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def exchange(connection, method: str, path: str, body=None, headers: dict | None = None):
    """One request on an open connection."""
    raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, raw, headers or {})
    response = connection.getresponse()
    return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()


def blocks_of(raw: bytes) -> list[str]:
    """What stands between the blank lines of a stream, which ends with one; comments aside; valid UTF-8."""
    text = raw.decode("utf-8")
    assert text.endswith("\n\n"), repr(text[-80:])
    return [block for block in text[:-2].split("\n\n") if not block.startswith(":")]


def parse_events(raw: bytes) -> list[str]:
    """Events of a stream by the letter: one data line each."""
    events = []
    for block in blocks_of(raw):
        assert block.startswith("data: ") and "\n" not in block, repr(block)
        events.append(block[len("data: ") :])
    return events


def parse_named_events(raw: bytes) -> list[dict]:
    """The events of a stream in which each has a name that its data repeats as its type."""
    events = []
    for block in blocks_of(raw):
        name, data = block.split("\n")
        assert name.startswith("event: ") and data.startswith("data: "), repr(block)
        events.append(json.loads(data[len("data: ") :]))
        assert events[-1]["type"] == name[len("event: ") :], block
    return events


def read_until(connection: socket.socket, wanted: bytes) -> bytes:
    data = b""
    while wanted not in data:
        piece = connection.recv(65536)
        assert piece, data
        data += piece
    return data


def reset(connection: socket.socket) -> None:
    """Closes with a reset instead of an orderly end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def wait_for(condition, what: str = "", seconds: float = 30):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, what or "it did not happen"
        time.sleep(0.02)
    return found


def raw_post(path: str, body: dict, extra: str = "") -> bytes:
    payload = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(payload)}\r\n{extra}\r\n"
    return head.encode() + payload


def chat(content: str | list = "hi", **fields) -> dict:
    return {"messages": [{"role": "user", "content": content}], **fields}
