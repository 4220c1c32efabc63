#!/usr/bin/env python3
"""Two builds of the program in turn over the same files; says what got slower.

usage: bench_compare.py OLD NEW FILE... [--rounds N] [--json]

Prefill reads 512 tokens, decode makes 128, rows: 8 rows of 16 tokens make 64 more together. A figure is flagged where the
median of the rounds' ratios is below 0.97 and three quarters of the rounds agree that the new build is slower. Exits with
1 where one is.
"""
import json
import statistics
import sys

from bench_peers import FIGURES, Godwit, begin

SLOWER, AGREEING = 0.97, 0.75


def is_slower(ratios):
    return statistics.median(ratios) < SLOWER and sum(ratio < 1 for ratio in ratios) >= AGREEING * len(ratios)


def main():
    flags, report = begin(__doc__, ["old", "new"], 7, "| file | figure | old tok/s | new tok/s | new to old | |")
    slower = False
    for file in flags.files:
        old, new = (Godwit(program, file, flags.threads) for program in (flags.old, flags.new))
        for figure, title in FIGURES.items():
            pairs = [(getattr(old, figure)(), getattr(new, figure)()) for _ in range(flags.rounds)]
            ratios = [after / before for before, after in pairs]
            found = {"old_tok_s": statistics.median(a for a, _ in pairs), "new_tok_s": statistics.median(b for _, b in pairs),
                     "ratio": statistics.median(ratios), "ratios": ratios, "slower": is_slower(ratios)}
            report["files"].setdefault(file.name, {})[figure] = found
            slower = slower or found["slower"]
            if not flags.json:
                print(f"| {file.name} | {title} | {found['old_tok_s']:.1f} | {found['new_tok_s']:.1f} | {found['ratio']:.3f} | "
                      f"{'slower' if found['slower'] else ''} |", flush=True)
    if flags.json:
        print(json.dumps(report, indent=2))
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
