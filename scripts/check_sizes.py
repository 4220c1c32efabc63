#!/usr/bin/env python3
"""Fails on source files over 600 lines and functions over 80 (kernels: 150), prints those past 400 as a hint.

A function is a block whose head holds a parameter list; its end is the closing brace at the same indentation, which
clang-format guarantees. usage: check_sizes.py DIR...
"""
import pathlib
import re
import sys

MAX_FILE, HINT_FILE = 600, 400
MAX_FUNCTION, MAX_KERNEL = 80, 150
NOT_A_FUNCTION = re.compile(r"^\s*(namespace|class|struct|union|enum|if|for|while|switch|else|do|try|catch|extern|return|case|\}|#)\b")
RUST_FUNCTION = re.compile(r"^\s*(pub(\(\w+\))? )?(unsafe )?(extern \"C\" )?fn ")
HEAD = re.compile(r"^(\s*)\S.*\)\s*(const|noexcept|override|final|->.*|:.*|\s)*\{$")


def functions_of(lines):
    """Yields (line number of the opening brace, length in lines)."""
    open_heads = []  # (indent, line)
    for number, line in enumerate(lines, 1):
        while open_heads and re.match(rf"^ {{{open_heads[-1][0]}}}\}}", line):
            _, start = open_heads.pop()
            yield start, number - start + 1
        head = HEAD.match(line)
        # A continuation line of a long head is indented by 4 or more; the block closes at the head's own indentation.
        if head and not NOT_A_FUNCTION.match(line) and not open_heads:
            indent = len(head[1])
            start = number
            while indent >= 4 and start > 1 and not RUST_FUNCTION.match(lines[start - 1]):
                start -= 1
                indent = len(lines[start - 1]) - len(lines[start - 1].lstrip())
            if not NOT_A_FUNCTION.match(lines[start - 1]):
                open_heads.append((indent, start))


def problems_of_file(path):
    lines = path.read_text().splitlines()
    problems = []
    if len(lines) > MAX_FILE:
        problems.append(f"{path}: {len(lines)} lines, split by concept (limit {MAX_FILE})")
    limit = MAX_KERNEL if "kernels" in path.parts else MAX_FUNCTION
    for start, length in functions_of(lines):
        if length > limit:
            problems.append(f"{path}:{start}: a function of {length} lines (limit {limit})")
    return problems


def source_files(roots):
    for root in roots:
        for path in sorted(pathlib.Path(root).rglob("*")):
            if path.suffix in (".h", ".cpp", ".rs", ".py") and not {"target", "build"} & set(path.parts):
                yield path


if __name__ == "__main__":
    found = []
    for source in source_files(sys.argv[1:]):
        found += problems_of_file(source)
        count = len(source.read_text().splitlines())
        if HINT_FILE < count <= MAX_FILE:
            print(f"hint: {source} has {count} lines")
    print("\n".join(found) or "sizes hold")
    sys.exit(bool(found))
