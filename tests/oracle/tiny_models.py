"""Builds a tiny mlx-lm model with random parameters and writes it as an ordinary checkpoint folder."""

import copy
import json
import pathlib
import zlib

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten
from mlx_lm.utils import _get_classes, quantize_model

from case import Case

BASE_SEED = 20261129


def seed_of(name: str, attempt: int) -> int:
    """The seed of a case: fixed, different from case to case, printed by the driver."""
    return BASE_SEED ^ zlib.crc32(f"{name}/{attempt}".encode())


def _random_parameter(case: Case, path: str, shape: tuple, rng: np.random.Generator) -> np.ndarray:
    """Values with spread around 1 or 0, so that no factor is neutral and no branch is dead."""
    if case.parameter and (own := case.parameter(path, shape, rng)) is not None:
        return own
    noise = rng.standard_normal(shape)
    if "norm" in path and path.endswith(".weight"):
        return 0.3 * noise + case.norm_centre
    if path.endswith(".bias"):
        return 0.15 * noise
    if "embed" in path:
        # Small: a tied head that sees mostly its own input would answer with that input for ever.
        return noise * case.embedding_spread
    return noise * 1.6 / np.sqrt(shape[-1])


def build(case: Case, seed: int) -> tuple[nn.Module, dict]:
    """The model of a case, quantized as it says, with the config that its checkpoint carries."""
    model_class, args_class = _get_classes(case.config)
    model = model_class(args_class.from_dict(case.config))
    if case.sanitize:
        model.sanitize({})
    rng = np.random.default_rng(seed)
    dtype_of = lambda path: mx.float32 if path.endswith(case.float32) else getattr(mx, case.dtype)  # noqa: E731
    weights = [
        (path, mx.array(_random_parameter(case, path, value.shape, rng).astype(np.float32)).astype(dtype_of(path)))
        for path, value in tree_flatten(model.parameters())
    ]
    weights = [(path, value * (6e4 if path == case.loud else 1)) for path, value in weights]
    model.load_weights(weights, strict=True)
    mx.eval(model.parameters())
    return _quantize(model, copy.deepcopy(case.config) | {"eos_token_id": 1, "torch_dtype": case.dtype}, case)


# Per-layer exceptions of the "mixed" cases. None leaves a module dense without saying so in the config.
_MIXED = {
    "model.embed_tokens": {"bits": 8, "group_size": 64},
    "model.layers.0.self_attn.v_proj": {"bits": 8, "group_size": 32},
    "model.layers.0.mlp.gate_proj": {"bits": 3, "group_size": 64},
    "model.layers.1.mlp.down_proj": {"bits": 6, "group_size": 128},
    "model.layers.1.mlp.up_proj": {"bits": 5, "group_size": 32},
    "model.layers.1.self_attn.k_proj": False,
    "model.layers.2.mlp.gate_proj": False,
    "model.layers.2.self_attn.q_proj": {"bits": 2, "group_size": 32},
    "model.layers.3.self_attn.o_proj": None,
    "model.layers.3.mlp.down_proj": {"bits": 4, "group_size": 32, "mode": "mxfp4"},
    "lm_head": False,
}


# The "groups" cases are affine of 4 and 8 bits and of every group size.
_GROUPS = {
    "model.embed_tokens": {"bits": 8, "group_size": 128},
    "model.layers.0.self_attn.q_proj": {"bits": 4, "group_size": 128},
    "model.layers.0.self_attn.v_proj": {"bits": 8, "group_size": 32},
    "model.layers.1.mlp.gate_proj": {"bits": 4, "group_size": 32},
    "model.layers.1.mlp.down_proj": {"bits": 8, "group_size": 64},
}
# The "widths" cases are affine of the other widths, again of every group size.
_WIDTHS = {
    "model.layers.0.self_attn.q_proj": {"bits": 5, "group_size": 128},
    "model.layers.0.self_attn.v_proj": {"bits": 6, "group_size": 32},
    "model.layers.0.mlp.gate_proj": {"bits": 3, "group_size": 64},
    "model.layers.1.self_attn.k_proj": {"bits": 5, "group_size": 32},
    "model.layers.1.mlp.up_proj": {"bits": 3, "group_size": 32},
    "model.layers.1.mlp.down_proj": {"bits": 3, "group_size": 128},
    "model.layers.2.mlp.up_proj": {"bits": 2, "group_size": 32},
    "model.layers.2.mlp.down_proj": {"bits": 6, "group_size": 128},
    "model.layers.3.self_attn.o_proj": {"bits": 2, "group_size": 64},
    "model.layers.3.mlp.gate_proj": {"bits": 2, "group_size": 128},
    "lm_head": {"bits": 5, "group_size": 64},
}
# Weights that native mode serves: the golden says how far int8 activations move their logits.
NATIVE = ("q4", "q8", "groups", "widths", "mixed", "mxfp4")


def _quantize(model: nn.Module, config: dict, case: Case) -> tuple[nn.Module, dict]:
    weights = case.weights
    if weights == "dense":
        return model, config
    if weights in ("mxfp4", "mxfp8", "nvfp4"):
        return quantize_model(model, config, None, None, mode=weights)
    if weights == "q8":
        return quantize_model(model, config, 64, 8)
    if weights == "q4":
        return quantize_model(model, config, 32, 4)
    if weights == "groups":
        return quantize_model(model, config, 64, 4, quant_predicate=lambda path, _: _GROUPS.get(path, True))
    if weights == "widths":
        return quantize_model(model, config, 64, 6, quant_predicate=lambda path, _: _WIDTHS.get(path, True))
    mixed = _MIXED if case.mixed is None else case.mixed
    model, config = quantize_model(model, config, 32, 4, quant_predicate=lambda path, _: mixed.get(path, True) or False)
    for path, exception in mixed.items():
        if weights == "inferred":  # the map is silent, the shapes tell
            config["quantization"].pop(path, None)
        elif exception is False:
            config["quantization"][path] = False
    return model, config


def save(folder: pathlib.Path, model: nn.Module, config: dict, sharded: bool, as_written=None) -> None:
    """Writes config.json and the weights, in one file or in two with an index."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    weights = dict(tree_flatten(model.parameters()))
    if as_written:
        weights = as_written(weights)
    if not sharded:
        mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
        return
    names = sorted(weights)
    index = {"metadata": {"total_size": sum(w.nbytes for w in weights.values())}, "weight_map": {}}
    for part in (0, 1):
        # Interleaved, so that the planes of one quantized module sit in different files.
        file_name = f"model-{part + 1:05d}-of-00002.safetensors"
        shard = {name: weights[name] for name in names[part::2]}
        mx.save_safetensors(str(folder / file_name), shard, metadata={"format": "mlx"})
        index["weight_map"] |= dict.fromkeys(shard, file_name)
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1))
