#!/usr/bin/env python3
"""Fails when an object compiled with ISA flags exports weak symbols.

A file built with -mavx512f that includes std containers emits weak copies of std functions in AVX-512; the linker may
keep those for the whole program, which then crashes on older CPUs. usage: check_weak_symbols.py BUILD_DIR
"""
import pathlib
import re
import subprocess
import sys

LEVEL_OBJECT = re.compile(r"_(avx2|avx512\w*|neon\w*)\.cpp\.o$")


def weak_symbols(path):
    listing = subprocess.run(["nm", "--defined-only", str(path)], check=True, capture_output=True, text=True).stdout
    return [line.split()[-1] for line in listing.splitlines() if len(line.split()) > 2 and line.split()[-2] in "WwVv"]


def problems_of_tree(root):
    problems = []
    for path in sorted(root.rglob("*.o")):
        if LEVEL_OBJECT.search(path.name):
            problems += [f"{path}: weak symbol {name}" for name in weak_symbols(path)]
    return problems


if __name__ == "__main__":
    found = problems_of_tree(pathlib.Path(sys.argv[1]))
    print("\n".join(found) or "no weak symbols")
    sys.exit(bool(found))
