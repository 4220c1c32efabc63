#!/usr/bin/env python3
"""Godwit beside mlx-lm on the same CPU: decode of one row over the same checkpoint, in turn, medians of the ratios.

usage: bench_mlx_lm.py GODWIT GGUF FOLDER [--rounds N] [--threads N] [--tokens N] [--json]   (with the Python of the oracle)

FOLDER keeps SmolLM2 as mlx-lm checkpoints: 4-bit planes of groups of 32 with the numbers of the file beside them in f32, and in
bf16, which is what mlx-lm's own converter writes. mlx-lm makes N tokens a round, since it makes few in a second; Godwit 128.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import time

import bench_peers

sys.path.append(str(pathlib.Path(__file__).parents[1] / "tests" / "oracle"))
import convert_smollm2  # noqa: E402
import gguf  # noqa: E402
import mlx.core as mx  # noqa: E402
from mlx_lm.models.cache import make_prompt_cache  # noqa: E402
from mlx_lm.utils import load_model  # noqa: E402

DTYPES = {"f32": mx.float32, "bf16": mx.bfloat16}


def checkpoints(file, folder):
    """The folder of each dtype, made once."""
    made = {name: folder / name for name in DTYPES}
    if not (made["f32"] / "config.json").is_file():
        reader = gguf.GGUFReader(file)
        convert_smollm2.convert(reader, convert_smollm2.config_of(convert_smollm2.fields(reader)), made["f32"])
    if not (made["bf16"] / "config.json").is_file():
        made["bf16"].mkdir(parents=True, exist_ok=True)
        weights = mx.load(str(made["f32"] / "model.safetensors"))
        halved = {name: array.astype(mx.bfloat16) if array.dtype == mx.float32 else array for name, array in weights.items()}
        mx.save_safetensors(str(made["bf16"] / "model.safetensors"), halved, metadata={"format": "mlx"})
        (made["bf16"] / "config.json").write_text((made["f32"] / "config.json").read_text())
    return made


class MlxLm:
    def __init__(self, folder, tokens):
        self.model, _ = load_model(folder)
        self.tokens = tokens

    def decode(self):
        """Tokens a second behind a prompt of one token, as Godwit's bench counts them."""
        cache = make_prompt_cache(self.model)
        token = mx.argmax(self.model(mx.array([[1]]), cache=cache)[:, -1], axis=-1)
        mx.eval(token)
        begin = time.perf_counter()
        for _ in range(self.tokens):
            token = mx.argmax(self.model(token[:, None], cache=cache)[:, -1], axis=-1)
            mx.eval(token)
        return self.tokens / (time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("godwit", "gguf", "folder"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    flags = parser.parse_args()
    mx.set_default_device(mx.cpu)
    report = {"processor": bench_peers.processor(), "threads": flags.threads, "load": os.getloadavg()[0], "checkpoints": {}}
    if not flags.json:
        print(f"{report['processor']}, {flags.threads} threads, load {report['load']:.1f} at the start\n")
        print("| checkpoint | Godwit tok/s | mlx-lm tok/s | ratio | least and most |\n|---|---|---|---|---|", flush=True)
    for name, folder in checkpoints(flags.gguf, flags.folder).items():
        ours, theirs = bench_peers.Godwit(flags.godwit, folder, flags.threads), MlxLm(folder, flags.tokens)
        pairs = [(ours.decode(), theirs.decode()) for _ in range(flags.rounds)]
        ratios = [mine / other for mine, other in pairs]
        mine, other = (statistics.median(column) for column in zip(*pairs))
        report["checkpoints"][name] = {"godwit_tok_s": mine, "mlx_lm_tok_s": other, "ratio": statistics.median(ratios), "ratios": ratios}
        if not flags.json:
            print(f"| SmolLM2-135M, 4 bits, {name} | {mine:.1f} | {other:.2f} | {statistics.median(ratios):.0f} | "
                  f"{min(ratios):.0f} … {max(ratios):.0f} |", flush=True)
    if flags.json:
        print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
