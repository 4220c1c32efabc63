#!/usr/bin/env python3
"""What native arithmetic costs: distance and perplexity over a text, model by model.

usage: fidelity_table.py GODWIT FILE... [--text FILE] [--tokens N] [--reference-tokens N] [--json]

Each file is compared twice: int8 activations with f32 activations over N tokens, f32 activations with the reference over as
many as --reference-tokens says (the reference makes about ten tokens a second). Without --text the text is the help of the
Python that runs this, English prose and code.
"""
import argparse
import json
import pathlib
import platform
import subprocess
import sys
import tempfile
from pydoc_data import topics

WINDOW = 512


def compare(godwit, file, text, tokens, activations, against):
    windows = max(1, -(-tokens // (WINDOW - 1)))
    command = [str(godwit), "eval", "fidelity", "-m", str(file), "--data", text, "--window", str(WINDOW), "--windows", str(windows),
               "--math", "native", "--activations", activations, "--against", against, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def line_of(name, ours, against, found):
    return (f"| {name} | {ours} | {against} | {found['positions']} | {found['mean_kl']:.2e} | {found['max_kl']:.2e} | "
            f"{100 * found['top1_agreement']:.2f} % | {found['perplexity']:.3f} | {100 * found['perplexity_change']:+.4f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("godwit", type=pathlib.Path)
    parser.add_argument("files", type=pathlib.Path, nargs="+")
    parser.add_argument("--text", help="the text to read (default: the topics of this Python's help)")
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--reference-tokens", type=int, default=8192)
    parser.add_argument("--json", action="store_true")
    flags = parser.parse_args()
    report = {}
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as help_text:
        help_text.write("\n".join(text for _, text in sorted(topics.topics.items())))
        help_text.flush()
        if not flags.json:
            print(f"text: {flags.text or f'help topics of Python {platform.python_version()}'}\n")
            print("| file | run | against | positions | mean KL | largest KL | same top token | perplexity | change |\n" + "|---" * 9 + "|")
        for file in flags.files:
            runs = [("int8", "f32", flags.tokens), ("f32", "reference", flags.reference_tokens)]
            for ours, against, tokens in runs:
                if tokens == 0:
                    continue
                found = compare(flags.godwit, file, flags.text or help_text.name, tokens, ours, against)
                report.setdefault(file.name, {})[against] = found
                if not flags.json:
                    print(line_of(file.name, f"native, {ours}", against, found), flush=True)
    if flags.json:
        print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
