"""Makes tiny checkpoints of one family and what mlx-lm answers for them, for the C++ golden tests.

    make_goldens.py FAMILY OUTDIR [--case NAME]...

FAMILY names a module in families/. OUTDIR/manifest.json lists the cases; each case is a folder with case.json,
expected.safetensors (logits in the model's dtype, raw bits) and the model: a checkpoint folder or a GGUF file.
"""

import argparse
import contextlib
import importlib
import json
import pathlib
import shutil
import time

import environment

VERSIONS = environment.require()

import mlx.core as mx  # noqa: E402  the environment is checked before anything heavy is imported
import numpy as np  # noqa: E402
from mlx.utils import tree_flatten  # noqa: E402
from mlx_lm.utils import dequantize_model, load_model  # noqa: E402

import case as cases  # noqa: E402
import expectations  # noqa: E402
import experts  # noqa: E402
import gguf_cases  # noqa: E402
import int8_activations  # noqa: E402
import tiny_models  # noqa: E402

ATTEMPTS = 8


def make_checkpoint_case(case: cases.Case, folder: pathlib.Path, seed: int) -> tuple[dict, dict]:
    model, config = tiny_models.build(case, seed)
    tiny_models.save(folder / "model", model, config, case.sharded, case.as_written)
    # Expected values come from the file as mlx-lm opens it, which proves at once that the checkpoint is a valid one.
    loaded, _ = load_model(folder / "model")
    if case.weights == "dense" and case.dtype == "float32":
        check_every_parameter_counts(case, loaded)
    rng = np.random.default_rng(seed + 1)
    with experts.one_matmul_each() if case.bounded else contextlib.nullcontext():
        tensors, description = expectations.expect(loaded, vocabulary_of(config), rng, case)
        if case.native or case.weights in tiny_models.NATIVE:
            tensors["int8_activations"] = with_int8_activations(loaded, description)
    if case.converted:
        tiny_models.save(folder / "converted", loaded, config, False, case.converted)
        description["twins"] = ["converted"]
    if case.bounded:
        tokens = description["tokens"]
        experts.check(loaded, lambda: expectations.plan_logits(loaded, tokens, description["plans"]["split"]))
    if case.native or case.weights in tiny_models.NATIVE:
        tensors["in_float32"] = in_float32(loaded, description)
    return tensors, description | {"dtype": case.dtype, "weights": case.weights, "model": "model", "bounded": case.bounded}


def in_float32(model, description: dict) -> mx.array:
    """Logits where everything is f32, the numbers that codes stand for included; mxfp4 gives bf16, which holds them."""
    model.set_dtype(mx.float32)
    model = dequantize_model(model)
    model.set_dtype(mx.float32)
    return expectations.plan_logits(model, description["tokens"], description["plans"]["stepwise"])


def with_int8_activations(model, description: dict) -> mx.array:
    with int8_activations.int8_products(model):
        return expectations.plan_logits(model, description["tokens"], description["plans"]["stepwise"])


def vocabulary_of(config: dict) -> int:
    return config["vocab_size"] if "vocab_size" in config else config["text_config"]["vocab_size"]


def check_every_parameter_counts(case: cases.Case, model) -> None:
    """Moves each parameter in turn: logits that stay equal would mean a branch that the golden cannot see."""
    tokens = mx.arange(case.prompt)[None]
    before = np.array(model(tokens))
    for path, value in tree_flatten(model.parameters()):
        if path in case.silent:
            continue
        model.load_weights([(path, value * 1.25 + 0.01)], strict=False)
        assert not np.array_equal(before, np.array(model(tokens))), f"{case.name}: {path} changes nothing"
        model.load_weights([(path, value)], strict=False)


def make_gguf_case(case: gguf_cases.GgufCase, folder: pathlib.Path, seed: int) -> tuple[dict, dict]:
    model = gguf_cases.write(case, folder / "model.gguf", seed)
    rng = np.random.default_rng(seed + 1)
    tensors, description = expectations.expect(model, vocabulary_of(case.config), rng, case)
    tensors["int8_activations"] = with_int8_activations(model, description)
    return tensors, description | {"dtype": "float32", "weights": "gguf", "model": "model.gguf", "bounded": False}


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
        description |= {"name": case.name, "seed": seed}
        (folder / "case.json").write_text(json.dumps(description))
        return seed
    raise SystemExit(f"{case.name}: no usable random weights in {ATTEMPTS} attempts")


def jobs_of(family: str) -> list[tuple]:
    module = importlib.import_module(f"families.{family}")
    jobs = [(case, make_checkpoint_case) for case in getattr(module, "checkpoints", list)()]
    return jobs + [(case, make_gguf_case) for case in getattr(module, "gguf_files", list)()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family")
    parser.add_argument("outdir", type=pathlib.Path)
    parser.add_argument("--case", action="append", help="make only this case (the manifest then lists only it)")
    arguments = parser.parse_args()
    mx.set_default_device(mx.cpu)
    jobs = jobs_of(arguments.family)
    if arguments.case:
        jobs = [job for job in jobs if job[0].name in arguments.case]
    if not jobs:
        parser.error(f"{arguments.family}: no such case: {arguments.case}")

    shutil.rmtree(arguments.outdir, ignore_errors=True)
    for case, make in jobs:
        start = time.monotonic()
        seed = make_case(case, make, arguments.outdir / case.name)
        print(f"{case.name}: seed {seed}, {time.monotonic() - start:.2f} s", flush=True)
    manifest = {"family": arguments.family, "versions": VERSIONS, "cases": [case.name for case, _ in jobs]}
    (arguments.outdir / "manifest.json").write_text(json.dumps(manifest, indent=1))


if __name__ == "__main__":
    main()
