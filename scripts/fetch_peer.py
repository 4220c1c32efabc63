#!/usr/bin/env python3
"""Builds one program that Godwit is measured against, from the source package that scripts/peers.json pins.

usage: fetch_peer.py NAME CACHE_DIR PIP   (prints the folder of its programs; exit 1 with a message when it cannot)

The peer is compiled for the very machine that runs it (its GGML_NATIVE), which is the fastest that it offers; Godwit is
measured as it ships.
"""
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile


def download(pip, peer, folder):
    command = [pip, "download", "--quiet", "--no-deps", f"--no-binary={peer['package'].split('==')[0]}", "--dest", str(folder), peer["package"]]
    if subprocess.run(command, stdout=sys.stderr).returncode != 0:
        sys.exit(f"fetch_peer: pip could not download {peer['package']}")
    (archive,) = folder.glob("*.tar.gz")
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != peer["sha256"]:
        sys.exit(f"fetch_peer: {archive.name} has the SHA-256 {found}, expected {peer['sha256']}")
    return archive


def compile_in(source, build, targets):
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DBUILD_SHARED_LIBS=OFF", "-DLLAMA_OPENSSL=OFF",
               "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF",
               "-DLLAMA_BUILD_APP=OFF"]
    for command in (["cmake", "-G", "Ninja", "-S", str(source), "-B", str(build), *options],
                    ["cmake", "--build", str(build), "--target", *targets]):
        if subprocess.run(command, stdout=sys.stderr).returncode != 0:
            sys.exit(f"fetch_peer: {' '.join(command[:2])} failed")


def main():
    name, cache, pip = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    peers = json.loads((pathlib.Path(__file__).parent / "peers.json").read_text())
    if name not in peers:
        sys.exit(f"fetch_peer: no peer {name}; there are {', '.join(peers)}")
    peer = peers[name]
    target = cache / "peers" / f"{name}-{peer['sha256'][:12]}"
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            scratch = pathlib.Path(scratch)
            with tarfile.open(download(pip, peer, scratch)) as archive:
                archive.extractall(scratch / "source", filter="data")
            (source,) = (scratch / "source").glob(f"*/{peer['source']}")
            compile_in(source, scratch / "build", peer["targets"])
            programs = scratch / "bin"
            programs.mkdir()
            for target_name in peer["targets"]:
                shutil.copy2(scratch / "build" / "bin" / target_name, programs / target_name)
            programs.rename(target)
    print(target)


if __name__ == "__main__":
    main()
