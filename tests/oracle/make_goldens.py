"""Makes tiny checkpoints and what mlx-lm answers for them, for the C++ golden tests.

    make_goldens.py OUTDIR [--case NAME]...

OUTDIR/manifest.json lists the cases and how many each group holds; each case is a folder with case.json,
expected.safetensors (logits in the model's dtype, raw bits) and the model: a checkpoint folder or a GGUF file.
"""

import argparse
import collections
import json
import pathlib
import shutil
import time

import environment

VERSIONS = environment.require()

import mlx.core as mx  # noqa: E402  the environment is checked before anything heavy is imported
import numpy as np  # noqa: E402
from mlx.utils import tree_flatten  # noqa: E402
from mlx_lm.utils import load_model  # noqa: E402

import cases  # noqa: E402
import expectations  # noqa: E402
import gguf_cases  # noqa: E402
import int8_activations  # noqa: E402
import tiny_models  # noqa: E402

ATTEMPTS = 8


def make_checkpoint_case(case: cases.Case, folder: pathlib.Path, seed: int) -> tuple[dict, dict]:
    model, config = tiny_models.build(case, seed)
    tiny_models.save(folder / "model", model, config, case.sharded)
    # Expected values come from the file as mlx-lm opens it, which proves at once that the checkpoint is a valid one.
    loaded, _ = load_model(folder / "model")
    if case.weights == "dense" and case.dtype == "float32":
        check_every_parameter_counts(case, loaded)
    rng = np.random.default_rng(seed + 1)
    tensors, description = expectations.expect(
        loaded, config["vocab_size"], rng, case.greedy_prompt, case.greedy_tokens
    )
    return tensors, description | {"family": case.family, "dtype": case.dtype, "model": "model"}


def check_every_parameter_counts(case: cases.Case, model) -> None:
    """Moves each parameter in turn: logits that stay equal would mean a branch that the golden cannot see."""
    tokens = mx.arange(expectations.PROMPT)[None]
    before = np.array(model(tokens))
    for path, value in tree_flatten(model.parameters()):
        model.load_weights([(path, value * 1.25 + 0.01)], strict=False)
        assert not np.array_equal(before, np.array(model(tokens))), f"{case.name}: {path} changes nothing"
        model.load_weights([(path, value)], strict=False)


def make_gguf_case(case: gguf_cases.GgufCase, folder: pathlib.Path, seed: int) -> tuple[dict, dict]:
    model = gguf_cases.write(case, folder / "model.gguf", seed)
    rng = np.random.default_rng(seed + 1)
    tensors, description = expectations.expect(model, case.config["vocab_size"], rng)
    with int8_activations.int8_products():
        tokens, spans = description["tokens"], description["plans"]["stepwise"]
        tensors["int8_activations"] = expectations.plan_logits(model, tokens, spans)
    return tensors, description | {"family": case.family, "dtype": "float32", "model": "model.gguf"}


def make_case(case, make, folder: pathlib.Path) -> int:
    """Writes one case folder and returns the seed in use."""
    folder.mkdir(parents=True)
    for attempt in range(ATTEMPTS):
        seed = tiny_models.seed_of(case.name, attempt)
        try:
            tensors, description = make(case, folder, seed)
        except expectations.Degenerate as reason:
            print(f"{case.name}: seed {seed} refused, {reason}")
            continue
        mx.save_safetensors(str(folder / "expected.safetensors"), tensors)
        description |= {"name": case.name, "group": case.group, "seed": seed}
        (folder / "case.json").write_text(json.dumps(description))
        return seed
    raise SystemExit(f"{case.name}: no usable random weights in {ATTEMPTS} attempts")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("outdir", type=pathlib.Path)
    parser.add_argument("--case", action="append", help="make only this case (the manifest then lists only it)")
    arguments = parser.parse_args()
    mx.set_default_device(mx.cpu)
    jobs = [(case, make_checkpoint_case) for case in cases.all_cases()]
    jobs += [(case, make_gguf_case) for case in gguf_cases.all_cases()]
    if arguments.case:
        jobs = [job for job in jobs if job[0].name in arguments.case]
    if not jobs:
        parser.error(f"no such case: {arguments.case}")

    shutil.rmtree(arguments.outdir, ignore_errors=True)
    for case, make in jobs:
        start = time.monotonic()
        seed = make_case(case, make, arguments.outdir / case.name)
        print(f"{case.name}: seed {seed}, {time.monotonic() - start:.2f} s", flush=True)
    groups = collections.Counter(case.group for case, _ in jobs)
    manifest = {"versions": VERSIONS, "cases": [case.name for case, _ in jobs], "groups": groups}
    (arguments.outdir / "manifest.json").write_text(json.dumps(manifest, indent=1))


if __name__ == "__main__":
    main()
