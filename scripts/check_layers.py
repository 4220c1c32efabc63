#!/usr/bin/env python3
"""Fails on an include that goes up or sideways between modules (docs/architecture.md, "Levels").

usage: check_layers.py SRC_DIR
"""
import pathlib
import re
import sys

LEVELS = {
    "base": 0,
    "kernels": 1,
    "ops": 2,
    "checkpoint": 3, "text": 3, "cache": 3, "hub": 3,
    "nn": 4,
    "models": 5,
    "decode": 6,
    "audio": 7, "vision": 7, "train": 7,
    "serve": 8,
    "cli": 9,
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([a-z_]+)/')
MLX_INCLUDE = re.compile(r"^\s*#\s*include\s+[<\"](mlx/|base/mx)")


def problems_of_file(path, module):
    if module not in LEVELS:
        return [f"{path}: module {module!r} has no level; add it to LEVELS and to docs/architecture.md"]
    problems = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if module == "kernels" and MLX_INCLUDE.match(line):
            problems.append(f"{path}:{number}: kernels know pointers only, no MLX type")
        match = INCLUDE.match(line)
        if not match or match[1] == module:
            continue
        target = match[1]
        if target in LEVELS and LEVELS[target] >= LEVELS[module]:
            problems.append(f"{path}:{number}: {module} (level {LEVELS[module]}) includes {target} (level {LEVELS[target]})")
    return problems


def problems_of_tree(root):
    problems = []
    for path in sorted(root.rglob("*")):
        if path.suffix in (".h", ".cpp") and "target" not in path.parts:
            problems += problems_of_file(path, path.relative_to(root).parts[0])
    return problems


if __name__ == "__main__":
    found = problems_of_tree(pathlib.Path(sys.argv[1]))
    print("\n".join(found) or "layers hold")
    sys.exit(bool(found))
