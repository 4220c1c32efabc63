#!/usr/bin/env python3
"""From the start of the program to its first token: packed weights found on disk, and packed anew, in turn.

usage: bench_start.py GODWIT FILE... [--rounds N] [--json]

The first start of each file is not counted: it fills the cache of packed weights and the system's cache of files. Beside the
medians of both ways stands where the time of the first goes, as the program itself says (-v): reading the description, and
then weights and text, which are read at the same time.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

OPENED = re.compile(rb"opened in ([\d.]+) s: description ([\d.]+) s, weights ([\d.]+) s, text beside them ([\d.]+) s")
PARTS = ("opened", "description", "weights", "text")


def seconds_to_token(godwit, file, *flags):
    """Wall time until the first byte of the answer is there, and what the program says of opening the model."""
    command = [str(godwit), "generate", "-v", "-m", str(file), "-p", "Hello", "-n", "1", *flags]
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        os.read(process.stdout.fileno(), 1)
        took = time.perf_counter() - begin
        _, said = process.communicate()
    opened = OPENED.search(said)
    if process.returncode != 0 or not opened:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}:\n{said.decode()[-2000:]}")
    return {"start": took, **dict(zip(PARTS, map(float, opened.groups())))}


def medians(runs):
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("godwit", type=pathlib.Path)
    parser.add_argument("files", type=pathlib.Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    flags = parser.parse_args()
    report = {}
    if not flags.json:
        print(f"load {os.getloadavg()[0]:.1f} at the start\n\n| file | packed weights on disk, s | of that: description | weights | text "
              "| packed at the start, s |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        ways = {"found": ("--packed-cache", folder), "packed": ("--packed-cache", "off")}
        for file in flags.files:
            seconds_to_token(flags.godwit, file, *ways["found"])
            runs = {way: [] for way in ways}
            for _ in range(flags.rounds):
                for way, more in ways.items():
                    runs[way].append(seconds_to_token(flags.godwit, file, *more))
            report[file.name] = {way: medians(of) for way, of in runs.items()}
            if not flags.json:
                found = report[file.name]["found"]
                print(f"| {file.name} | {found['start']:.3f} | {found['description']:.3f} | {found['weights']:.3f} | {found['text']:.3f} | "
                      f"{report[file.name]['packed']['start']:.3f} |", flush=True)
    if flags.json:
        print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
