"""The table of docs/families.md, from the golden cases that passed in this test run.

    family_table.py GODWIT GOLDEN_ROOT DOC [--write]

GOLDEN_ROOT holds one folder a family, as make_goldens.py left it; GODWIT is the program, which says for each model there
by which profile it opens it and what that promises. A case for which something stands in for mlx-lm must be promised
less than its bits, every other one no less. Without --write the part of DOC between its markers must equal what the cases
say; the program ends with 1 and shows the difference where it does not.
"""

import argparse
import collections
import difflib
import importlib
import json
import pathlib
import subprocess
import sys

BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"
SHORT = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}
EXACT = "L1, mlx-lm, bit-exact"
ORDER = ("dense", "q4", "q8", "groups", "widths", "mixed", "inferred", "mxfp4", "mxfp8", "nvfp4")


def described(folder: pathlib.Path) -> list[dict]:
    manifest = json.loads((folder / "manifest.json").read_text())
    return [json.loads((folder / name / "case.json").read_text()) for name in manifest["cases"]]


def safetensors_cell(cases: list[dict]) -> str:
    dtypes = collections.defaultdict(set)
    for case in cases:
        if case["weights"] != "gguf":
            dtypes[case["weights"]].add(SHORT[case["dtype"]])
    shown = sorted(dtypes, key=lambda weights: ORDER.index(weights) if weights in ORDER else len(ORDER))
    return " · ".join(f"{weights} ({', '.join(sorted(dtypes[weights]))})" for weights in shown) or "–"


def gguf_cell(family: str) -> str:
    files = getattr(importlib.import_module(f"families.{family}"), "gguf_files", list)()
    return ", ".join(sorted({kind.name for case in files for kind in case.formats.values()})) or "–"


def reference_promises(program: pathlib.Path, folder: pathlib.Path) -> dict[pathlib.Path, str]:
    """The path of each model below a folder -> what the program promises of it in `reference` arithmetic."""
    # C.UTF-8 and nothing else: no setting of this shell can change what it says.
    answer = subprocess.run([program, "scan", "--json", folder], env={"LC_ALL": "C.UTF-8"}, stdout=subprocess.PIPE, check=True)
    promises = {}
    for model in json.loads(answer.stdout)["models"]:
        if model["refused"]:
            sys.exit(f"{model['path']}: {model['refused']}")
        reference = model["profile"]["reference"]
        promises[pathlib.Path(model["path"])] = ", ".join(reference[key] for key in ("tier", "oracle", "claim"))
    return promises


def promise_cell(program: pathlib.Path, folder: pathlib.Path, cases: list[dict]) -> str:
    """The promise that most cases have, then the others with the cases they are for."""
    promises, by_promise = reference_promises(program, folder), collections.defaultdict(list)
    for case in cases:
        promise = promises[folder / case["name"] / case["model"]]
        if case["bounded"] == (promise == EXACT):
            sys.exit(f"{folder.name}: {case['name']} is {'bounded' if case['bounded'] else 'exact'}, and promised is {promise}")
        by_promise[promise].append(case)
    common, *others = sorted(by_promise, key=lambda promise: -len(by_promise[promise]))
    names = lambda promise: ", ".join(sorted(case["name"] for case in by_promise[promise]))  # noqa: E731
    return "; ".join([common] + [f"{names(promise)}: {promise}" for promise in others])


def table(program: pathlib.Path, root: pathlib.Path) -> str:
    lines = ["| family | cases | safetensors: weights (activations) | GGUF: tensor formats | promise |", "|---|---|---|---|---|"]
    for folder in sorted(path for path in root.iterdir() if (path / "manifest.json").exists()):
        cases = described(folder)
        cells = folder.name, str(len(cases)), safetensors_cell(cases), gguf_cell(folder.name), promise_cell(program, folder, cases)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("doc", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    text = arguments.doc.read_text()
    head, rest = text.split(BEGIN)
    old, tail = rest.split(END)
    new = table(arguments.program, arguments.root)
    if arguments.write:
        arguments.doc.write_text(head + BEGIN + new + END + tail)
    elif old != new:
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), str(arguments.doc), "cases"))
        sys.exit(f"{arguments.doc} says something else than the golden cases; './dev families' writes it anew")


if __name__ == "__main__":
    main()
