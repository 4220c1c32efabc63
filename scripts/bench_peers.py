#!/usr/bin/env python3
"""Godwit beside llama.cpp: the same files, the same threads, in turn, medians of the ratios of each round.

usage: bench_peers.py GODWIT PEER_PROGRAMS FILE... [--rounds N] [--threads N] [--json]

Each round runs one program after the other for each figure, so that other work on the machine meets both. Prefill reads
512 tokens; decode makes 128 from an empty context; rows: 8 rows of 16 tokens make 64 more together.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

PROMPT, GENERATE, ROWS, ROW_PROMPT, ROW_GENERATE = 512, 128, 8, 16, 64


def output_of(command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(str(part) for part in command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


class Godwit:
    def __init__(self, program, file, threads):
        self.common = [program, "bench", "-m", file, "--threads", threads, "--math", "native", "--repeats", 1, "--json"]

    def run(self, prompt, generate):
        return json.loads(output_of([*self.common, "--prompt", prompt, "--generate", generate]))["runs"][0]

    def prefill(self):
        return self.run(PROMPT, 2)["prefill_tok_s"]

    def decode(self):
        return self.run(1, GENERATE + 1)["decode_tok_s"]

    def rows(self):
        flags = ["--rows", ROWS, "--prompt", ROW_PROMPT, "--generate", ROW_GENERATE]
        return json.loads(output_of([*self.common, *flags]))["decode_tok_s_together"]


class LlamaCpp:
    def __init__(self, programs, file, threads):
        self.bench = [programs / "llama-bench", "-m", file, "-t", threads, "-r", 1, "-o", "json"]
        self.batched = [programs / "llama-batched-bench", "-m", file, "-t", threads, "-tb", threads, "-c", 2048, "-npp", ROW_PROMPT,
                        "-ntg", ROW_GENERATE, "-npl", ROWS, "--output-format", "jsonl"]

    def run(self, prompt, generate):
        (test,) = json.loads(output_of([*self.bench, "-p", prompt, "-n", generate]))
        return test["avg_ts"]

    def prefill(self):
        return self.run(PROMPT, 0)

    def decode(self):
        return self.run(0, GENERATE)

    def rows(self):
        (line,) = [line for line in output_of(self.batched).splitlines() if line.startswith("{")]
        return json.loads(line)["speed_tg"]


FIGURES = {"prefill": f"prefill {PROMPT}", "decode": "decode, 1 row", "rows": f"decode, {ROWS} rows"}


def measure(ours, theirs, rounds):
    found = {}
    for figure in FIGURES:
        pairs = [(getattr(ours, figure)(), getattr(theirs, figure)()) for _ in range(rounds)]
        mine, other = zip(*pairs)
        found[figure] = {"godwit_tok_s": statistics.median(mine), "llama.cpp_tok_s": statistics.median(other),
                         "ratio": statistics.median(a / b for a, b in pairs), "ratios": [a / b for a, b in pairs]}
    return found


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def begin(description, programs, rounds, title):
    """The flags, and a report with the machine in it; prints the head of a table unless JSON was asked for."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    for program in programs:
        parser.add_argument(program, type=pathlib.Path)
    parser.add_argument("files", type=pathlib.Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", action="store_true")
    flags = parser.parse_args()
    report = {"processor": processor(), "threads": flags.threads, "load": os.getloadavg()[0], "files": {}}
    if not flags.json:
        print(f"{report['processor']}, {flags.threads} threads, load {report['load']:.1f} at the start\n")
        print(f"{title}\n{'|---' * (title.count('|') - 1)}|", flush=True)
    return flags, report


def main():
    flags, report = begin(__doc__, ["godwit", "peer"], 5, "| file | figure | Godwit tok/s | llama.cpp tok/s | ratio | least and most |")
    for file in flags.files:
        found = measure(Godwit(flags.godwit, file, flags.threads), LlamaCpp(flags.peer, file, flags.threads), flags.rounds)
        report["files"][file.name] = found
        for figure, value in found.items() if not flags.json else ():
            print(f"| {file.name} | {FIGURES[figure]} | {value['godwit_tok_s']:.1f} | {value['llama.cpp_tok_s']:.1f} | "
                  f"{value['ratio']:.2f} | {min(value['ratios']):.2f} … {max(value['ratios']):.2f} |", flush=True)
    if flags.json:
        print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
