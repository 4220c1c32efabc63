"""Checks that this interpreter is the pinned oracle environment before anything is computed with it.

The expected tensors are only worth comparing when they come from the releases that requirements.txt names: another MLX
rounds differently. A wrong or missing package ends the program with a message that says how to get the right one.
"""

import importlib.metadata
import pathlib
import sys

REQUIREMENTS = pathlib.Path(__file__).with_name("requirements.txt")
# The releases that decide bits. The rest of the closure only has to import.
DECISIVE = ("mlx", "mlx-lm", "numpy", "gguf", "transformers", "safetensors")

HELP = f"""The oracle environment is missing or not the pinned one.
  './dev test' builds it; by hand:
    python3 -m venv build/oracle && build/oracle/bin/pip install --no-deps -r {REQUIREMENTS}
  then configure with -DGODWIT_ORACLE_PYTHON=<absolute path>/build/oracle/bin/python"""


def pinned() -> dict[str, str]:
    """The name -> version pairs of requirements.txt."""
    lines = [line.split("#")[0].split(";")[0].strip() for line in REQUIREMENTS.read_text().splitlines()]
    return dict(line.split("==") for line in lines if line)


def require(*more: str) -> dict[str, str]:
    """Returns the decisive versions, those of `more` included, or exits with status 1 and the way to repair it."""
    pins = pinned()
    names = DECISIVE + more
    for name in names:
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found = "not installed"
        if found != pins[name]:
            sys.exit(f"{name}: {found}, wanted {pins[name]} (python: {sys.executable})\n{HELP}")
    return {name: pins[name] for name in names}
