#!/usr/bin/env python3
"""Godwit's server beside llama-server: the same file and threads, in turn, medians over rounds.

usage: bench_server.py GODWIT PEER_PROGRAMS FILE [--rounds N] [--threads N] [--json]

Each round starts one server after the other and asks both the same over HTTP: the time from the start until the model can be
asked (/readyz of ours, /health of the other), to the first token of a prompt of about 400 tokens, never seen and seen before,
tokens per second of eight clients together, the gaps between the tokens of four running streams before and while a prompt of
2,000 tokens joins, and memory. What serving costs beyond the engine is taken from the time in which all eight clients have
their first token and none has its last, beside `godwit bench --rows 8` over the same lengths.
"""
import argparse
import http.client
import json
import os
import pathlib
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

CLIENTS, ANSWER, STREAMS, LONG_WORDS, SHORT_WORDS = 8, 128, 4, 1500, 300
WORDS = ("river stone window garden market letter winter summer engine bridge candle silver forest island captain music "
         "paper shadow history morning evening station travel simple narrow bright hidden quiet modern ancient").split()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def text_of(words, seed):
    source = random.Random(seed)
    return " ".join(source.choice(WORDS) for _ in range(words))


class Server:
    """A server process and what is asked of it."""

    def __init__(self, command, log, ready_path):
        self.ready_path = ready_path
        self.port = free_port()
        command = [str(part) for part in command] + ["--host", "127.0.0.1", "--port", str(self.port)]
        begin = time.perf_counter()
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        while not self.answers():
            if self.process.poll() is not None:
                sys.exit(f"{' '.join(command)} ended with {self.process.returncode}; see {log.name}")
            time.sleep(0.002)
        self.ready_s = time.perf_counter() - begin

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def answers(self):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1)
            connection.request("GET", self.ready_path)
            return connection.getresponse().status == 200
        except OSError:
            return False

    def memory(self, field):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
        sys.exit(f"/proc has no {field}")

    def stream(self, prompt, tokens, times):
        """Appends the time of each piece of text to `times`; returns the time of the request."""
        body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": True, "ignore_eos": True}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        begin = time.perf_counter()
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            sys.exit(f"{response.status}: {response.read()[:500]}")
        for line in response:
            if line.startswith(b"data: {") and b'"finish_reason":null' in line.replace(b" ", b""):
                times.append(time.perf_counter())
        return begin

    def first_token(self, prompt):
        times = []
        begin = self.stream(prompt, 2, times)
        return times[0] - begin


def together(jobs):
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def aggregate(server, seed):
    """Tokens per second of all clients, prompts included in the time; and while all of them only make tokens."""
    times = [[] for _ in range(CLIENTS)]
    begin = time.perf_counter()
    together([lambda i=i: server.stream(text_of(30, seed + i), ANSWER, times[i]) for i in range(CLIENTS)])
    whole = CLIENTS * ANSWER / (max(max(of_one) for of_one in times) - begin)
    first, last = max(of_one[0] for of_one in times), min(of_one[-1] for of_one in times)
    if last <= first:
        sys.exit("the clients took turns: there is no time in which all of them made tokens")
    return whole, sum(first < at <= last for of_one in times for at in of_one) / (last - first)


def gaps_of(streams, begin, end):
    """Gaps of which a part lies within [begin, end]: a stream that stands still all along has one, too."""
    return [later - earlier for times in streams for earlier, later in zip(times, times[1:]) if begin < later and earlier < end]


def joining(server, seed):
    """(median gap before, p99 gap while a long prompt joins, its time to the first token), seconds."""
    streams = [[] for _ in range(STREAMS)]
    runners = [threading.Thread(target=lambda i=i: server.stream(text_of(30, seed + i), 700, streams[i])) for i in range(STREAMS)]
    for runner in runners:
        runner.start()
    while any(len(times) < 100 for times in streams):
        time.sleep(0.01)
    joined = time.perf_counter()
    first = server.first_token(text_of(LONG_WORDS, seed + 99))
    done = joined + first
    for runner in runners:
        runner.join()
    before = gaps_of(streams, streams[0][20], joined)
    while_joining = sorted(gaps_of(streams, joined, done))
    if not while_joining:
        sys.exit("the running streams ended, or stood still, while the long prompt joined: no gap to measure")
    return statistics.median(before), while_joining[int(0.99 * (len(while_joining) - 1))], first


def measure(commands, seed, log, ready_path):
    found = {}
    with Server(commands["clients"], log, ready_path) as server:
        found["ready_s"] = server.ready_s
        found["idle_bytes"] = server.memory("VmRSS")
        server.first_token(text_of(20, seed))
        cold = text_of(SHORT_WORDS, seed + 1)
        found["first_token_cold_s"] = server.first_token(cold)
        found["first_token_hit_s"] = server.first_token(cold)
        found["clients_tok_s"], found["steady_tok_s"] = aggregate(server, seed + 10)
        found["resident_bytes"] = server.memory("VmRSS")
    with Server(commands["joining"], log, ready_path) as server:
        server.first_token(text_of(20, seed))
        found["gap_before_s"], found["gap_p99_joining_s"], found["joiner_first_token_s"] = joining(server, seed + 20)
    found["gap_times"] = found["gap_p99_joining_s"] / found["gap_before_s"]
    return found


def rows_rate(godwit, file, threads):
    """What the engine alone makes of as many rows, tokens per second."""
    command = [godwit, "bench", "-m", file, "--threads", threads, "--rows", CLIENTS, "--prompt", 30, "--generate", ANSWER, "--repeats", 1, "--json"]
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)["decode_tok_s_together"]


FIGURES = {"ready_s": "start to ready, ms", "first_token_cold_s": "first token, 400-token prompt, cold, ms",
           "first_token_hit_s": "first token, the same prompt again, ms", "clients_tok_s": f"{CLIENTS} clients together, tokens/s",
           "steady_tok_s": "the same, while all of them make tokens, tokens/s",
           "gap_before_s": f"gap of {STREAMS} streams, median, ms", "gap_p99_joining_s": "gap while 2,000 tokens join, p99, ms",
           "gap_times": "p99 while joining / median before", "joiner_first_token_s": "first token of the joiner, ms",
           "idle_bytes": "resident after the start, MB", "resident_bytes": "resident after the clients, MB"}


READY = {"godwit": "/readyz", "llama-server": "/health"}


def shown(key, value):
    return f"{value * 1e3:.1f}" if key.endswith("_s") and "tok_s" not in key else f"{value / 1e6:.0f}" if key.endswith("bytes") else f"{value:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("godwit", type=pathlib.Path)
    parser.add_argument("peer", type=pathlib.Path)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", action="store_true")
    flags = parser.parse_args()
    ours = [flags.godwit, "serve", "-m", flags.file, "--threads", flags.threads]
    theirs = [flags.peer / "llama-server", "-m", flags.file, "-t", flags.threads, "-tb", flags.threads]
    sides = {"godwit": {"clients": ours, "joining": ours},
             "llama-server": {"clients": [*theirs, "-np", CLIENTS, "-c", 1024 * CLIENTS],
                              "joining": [*theirs, "-np", STREAMS + 1, "-c", 4096 * (STREAMS + 1)]}}
    rounds = {name: [] for name in sides}
    overhead = []
    with tempfile.NamedTemporaryFile("w", suffix=".log", delete=False) as log:
        for index in range(flags.rounds + 1):  # the first round warms caches and is not counted
            for name, commands in sides.items():
                found = measure(commands, 1000 * index, log, READY[name])
                if index > 0:
                    rounds[name].append(found)
            if index > 0:
                overhead.append(1e3 / rounds["godwit"][-1]["steady_tok_s"] - 1e3 / rows_rate(flags.godwit, flags.file, flags.threads))
    report = {"file": flags.file.name, "threads": flags.threads, "rounds": flags.rounds, "http_overhead_ms_per_token": statistics.median(overhead)}
    for key in FIGURES:
        mine, other = ([found[key] for found in rounds[name]] for name in sides)
        report[key] = {"godwit": statistics.median(mine), "llama-server": statistics.median(other),
                       "ratio": statistics.median(a / b for a, b in zip(mine, other))}
    if flags.json:
        return print(json.dumps(report))
    print(f"{flags.file.name}, {flags.threads} threads, medians of {flags.rounds} rounds\n")
    print("| figure | Godwit | llama-server | ratio |\n|---|---|---|---|")
    for key, label in FIGURES.items():
        of = report[key]
        print(f"| {label} | {shown(key, of['godwit'])} | {shown(key, of['llama-server'])} | {of['ratio']:.2f} |")
    print(f"\nServing {CLIENTS} clients costs {report['http_overhead_ms_per_token']:.2f} ms a token beyond the engine's own {CLIENTS} rows.")


if __name__ == "__main__":
    main()
