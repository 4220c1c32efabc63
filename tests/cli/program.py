"""Runs the program as a user does: arguments in, exit code, standard output and standard error out."""

import os
import pathlib
import subprocess
import tempfile

BINARY = os.environ["GODWIT_BINARY"]
MODELS = pathlib.Path(os.environ["GODWIT_TINY_MODELS"])
CHAIN = str(MODELS / "chain")  # answers ANSWER after every generation prompt
RANDOM = str(MODELS / "random")  # noise
ANSWER = "a😸b作c"
TIMEOUT_S = 60

# A home without any model, so that nothing is found by accident.
_home = tempfile.TemporaryDirectory()
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": _home.name, "LC_ALL": "C.UTF-8"}


def run(*arguments, stdin=b"", environment=None, **options):
    """The finished process; stdout and stderr are bytes. `environment` adds variables."""
    return subprocess.run(
        [BINARY, *arguments],
        input=stdin,
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        env=ENVIRONMENT | (environment or {}),
        timeout=TIMEOUT_S,
        **options,
    )


def start(*arguments, **streams):
    return subprocess.Popen([BINARY, *arguments], env=ENVIRONMENT, **streams)
