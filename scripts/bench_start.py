#!/usr/bin/env python3
"""From the start of the program to its first token: packed weights found on disk, and packed anew, in turn.

usage: bench_start.py GODWIT FILE... [--rounds N] [--json]

The first start of each file is not counted: it fills the cache of packed weights and the system's cache of files.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def seconds_to_token(godwit, file, *flags):
    """Wall time until the first byte of the answer is there."""
    command = [str(godwit), "generate", "-m", str(file), "-p", "Hello", "-n", "1", *flags]
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        os.read(process.stdout.fileno(), 1)
        took = time.perf_counter() - begin
        _, said = process.communicate()
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}:\n{said.decode()[-2000:]}")
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("godwit", type=pathlib.Path)
    parser.add_argument("files", type=pathlib.Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    flags = parser.parse_args()
    report = {}
    if not flags.json:
        print(f"load {os.getloadavg()[0]:.1f} at the start\n\n| file | packed weights on disk, s | packed at the start, s |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        ways = {"found": ("--packed-cache", folder), "packed": ("--packed-cache", "off")}
        for file in flags.files:
            seconds_to_token(flags.godwit, file, *ways["found"])
            times = {way: [] for way in ways}
            for _ in range(flags.rounds):
                for way, more in ways.items():
                    times[way].append(seconds_to_token(flags.godwit, file, *more))
            report[file.name] = {way: statistics.median(values) for way, values in times.items()}
            if not flags.json:
                print(f"| {file.name} | {report[file.name]['found']:.3f} | {report[file.name]['packed']:.3f} |", flush=True)
    if flags.json:
        print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
