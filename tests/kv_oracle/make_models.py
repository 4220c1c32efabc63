"""Tiny checkpoints and what mlx-lm and mlx-optiq answer for them over encoded KV.

    make_models.py OUTDIR [--case NAME]...

OUTDIR/models holds the checkpoints, each with a kv_config.json; every other folder is a case: case.json (with the KV
policy and its start) and expected.safetensors. OUTDIR/manifest.json lists the cases by group.
"""

import argparse
import collections
import dataclasses
import functools
import json
import pathlib
import shutil
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "oracle"))
import environment  # noqa: E402

VERSIONS = environment.require("mlx-optiq")

import mlx.core as mx  # noqa: E402
import numpy as np  # noqa: E402
from mlx_lm.models.cache import make_prompt_cache  # noqa: E402
from mlx_lm.utils import load_model  # noqa: E402

import case as dense  # noqa: E402
import expectations  # noqa: E402
import oracles  # noqa: E402
import tiny_models  # noqa: E402
from families import gemma3_text, llama  # noqa: E402

LLAMA = llama.LLAMA | {"head_dim": 64, "num_hidden_layers": 3}
GEMMA = gemma3_text.SCALED | {"head_dim": 64, "num_hidden_layers": 4}
LONG = LLAMA | {"num_hidden_layers": 2, "max_position_embeddings": 4096}
MODELS = {
    f"{name}-{short}": dense.Case(f"kv-{name}-{short}", config, dtype, "dense", **options)
    for name, config, dtypes, options in (
        ("llama", LLAMA, ("float32", "bfloat16", "float16"), {}),
        ("gemma3_text", GEMMA, ("float32", "bfloat16"), gemma3_text.OPTIONS | gemma3_text.TIED),
        ("long", LONG, ("float32", "bfloat16"), {}),
    )
    for dtype, short in {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}.items()
    if dtype in dtypes
}
# By layer; llama leaves its last layer dense. gemma's sliding layers are 0, 1 and 3.
CONFIGS = {
    "llama": [(0, 8, 64), (1, 4, 32)],
    "gemma3_text": [(0, 4, 32), (1, 8, 64), (2, 4, 64), (3, 6, 32)],
    "long": [(0, 4, 64), (1, 8, 32)],
}
PLANS = expectations.plans(21) | {"wraps": [5] + [1] * 40}


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    kv: str
    start: int
    plans: dict
    prompt: int = 21
    tokens: int = 32

    @property
    def name(self) -> str:
        return f"{self.model}-{self.kv.replace(':', '-')}-start{self.start}"

    @property
    def group(self) -> str:
        return f"{self.model.split('-')[0]}_{self.kv.split(':')[0]}"


def all_cases() -> list[Case]:
    # Starts: at once; inside a plan's first forward or behind it; and while it generates.
    short = functools.partial(Case, plans=PLANS)
    cases = [short("llama-f32", f"affine:{kv}", start) for kv in ("4:64", "8:32") for start in (0, 10, 25)]
    cases += [short("llama-f32", "affine:4:32", 0), short("llama-f32", "affine:8:64", 25)]
    cases += [short("llama-bf16", f"affine:{kv}", start) for kv, start in (("4:64", 0), ("8:32", 10), ("4:32", 25))]
    cases.append(short("llama-f16", "affine:8:64", 10))
    few = {"turns": PLANS["turns"]}
    cases += [Case("llama-f32", f"affine:{bits}:32", 0, few, tokens=12) for bits in (2, 3, 5, 6)]
    cases.append(short("gemma3_text-f32", "dense", 0))
    cases += [short("gemma3_text-f32", kv, start)
              for kv, start in (("affine:4:32", 0), ("affine:8:64", 6), ("affine:4:64", 30))]
    cases.append(short("gemma3_text-bf16", "affine:4:64", 6))
    cases += [short("llama-f32", "config", 10), short("llama-bf16", "config", 0), short("llama-f16", "config", 25)]
    cases += [short("gemma3_text-f32", "config", start) for start in (0, 6, 25)]
    cases += [short("gemma3_text-bf16", "config", start) for start in (0, 25)]
    # A prompt of two chunks (2048, the rest, the last token alone), converted behind the first, the second, the last
    # and while it generates; and columns past two tiles of 512.
    long = functools.partial(Case, "long-f32", prompt=2062, tokens=12)
    chunks = {"chunks": [2048, 13] + [1] * 6}
    cases += [long("affine:4:64", start, {}) for start in (2048, 2062)]
    cases += [long("affine:4:64", start, chunks) for start in (2049, 2066)]
    cases.append(Case("long-bf16", "config", 0, {"tiles": [520, 600] + [1] * 3}, prompt=1100, tokens=8))
    return cases


def varied_model(case: dense.Case):
    """Random weights whose dense greedy answer does not repeat one token."""
    for attempt in range(8):
        model, config = tiny_models.build(case, tiny_models.seed_of(case.name, attempt))
        if len(set(expectations.greedy(model, list(range(1, 22)), 32))) >= 8:
            return model, config
    raise SystemExit(f"{case.name}: no usable random weights")


def make_model(name: str, folder: pathlib.Path) -> None:
    case = MODELS[name]
    model, config = varied_model(case)
    tiny_models.save(folder, model, config, sharded=False)
    entries = CONFIGS[name.split("-")[0]]
    layers = [{"layer_idx": layer, "bits": bits, "group_size": group} for layer, bits, group in entries]
    (folder / "kv_config.json").write_text(json.dumps(layers))


def plan_logits(model, oracle: oracles.Oracle, tokens: list[int], spans: list[int]) -> mx.array:
    """[sum of spans, vocabulary]: the cache is offered for conversion behind every forward, as mlx-lm does."""
    cache, parts, begin = make_prompt_cache(model), [], 0
    for span in spans:
        logits = model(mx.array([tokens[begin : begin + span]]), cache=cache)[0]
        oracle.convert(cache)
        mx.eval(logits, [c.state for c in cache])
        parts.append(logits)
        begin += span
    return mx.concatenate(parts, axis=0)


def make_case(case: Case, outdir: pathlib.Path) -> None:
    folder = outdir / case.name
    folder.mkdir()
    path = outdir / "models" / case.model
    model, config = load_model(path)
    oracle = oracles.install(case.model, case.kv, case.start, path / "kv_config.json")
    rng = np.random.default_rng(tiny_models.seed_of(case.name, 0))
    count = max((sum(spans) for spans in case.plans.values()), default=1)
    tokens = expectations.token_sequence(count, config["vocab_size"], rng)
    tensors = {name: plan_logits(model, oracle, tokens, spans) for name, spans in case.plans.items()}
    prompt, answer = varied_answer(case, model, oracle, config["vocab_size"])
    description = {"name": case.name, "group": case.group, "model": f"../models/{case.model}", "kv": case.kv,
                   "start": case.start, "tokens": tokens, "plans": case.plans, "greedy_prompt": prompt,
                   "greedy_tokens": answer}  # fmt: skip
    mx.save_safetensors(str(folder / "expected.safetensors"), tensors | {"none": mx.zeros(1)})
    (folder / "case.json").write_text(json.dumps(description))


def varied_answer(case: Case, model, oracle: oracles.Oracle, vocabulary: int) -> tuple[list[int], list[int]]:
    """A prompt whose answer does not repeat one token, and that answer."""
    for attempt in range(8):
        rng = np.random.default_rng(tiny_models.seed_of(case.name, attempt + 1))
        prompt = expectations.token_sequence(case.prompt, vocabulary, rng)
        answer = oracle.greedy(model, prompt, case.tokens)
        if len(set(answer)) >= 4:
            return prompt, answer
    raise SystemExit(f"{case.name}: every greedy answer repeats itself")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("outdir", type=pathlib.Path)
    parser.add_argument("--case", action="append", help="make only this case")
    arguments = parser.parse_args()
    mx.set_default_device(mx.cpu)
    shutil.rmtree(arguments.outdir, ignore_errors=True)
    for name in MODELS:
        make_model(name, arguments.outdir / "models" / name)
    cases = [case for case in all_cases() if not arguments.case or case.name in arguments.case]
    # mlx-optiq changes mlx-lm for good, so what mlx-lm can answer itself comes first.
    cases.sort(key=lambda case: oracles.order(case.model, case.kv))
    for case in cases:
        start = time.monotonic()
        make_case(case, arguments.outdir)
        print(f"{case.name}: {time.monotonic() - start:.2f} s", flush=True)
    groups = collections.Counter(case.group for case in cases)
    manifest = {"versions": VERSIONS, "cases": [case.name for case in cases], "groups": groups}
    (arguments.outdir / "manifest.json").write_text(json.dumps(manifest, indent=1))


if __name__ == "__main__":
    main()
