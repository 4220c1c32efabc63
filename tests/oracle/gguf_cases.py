"""Tiny GGUF files in the form converters write them, and the mlx-lm model that holds exactly the same values in f32."""

import dataclasses
import pathlib
import re
import typing

import gguf
import mlx.core as mx
import mlx.nn as nn
import numpy as np
from gguf import GGMLQuantizationType as Type
from mlx.utils import tree_flatten
from mlx_lm.models.rope_utils import Llama3RoPE
from mlx_lm.utils import _get_classes

import gguf_blocks
from case import Parameter


@dataclasses.dataclass(frozen=True)
class GgufCase:
    name: str
    arch: str  # general.architecture
    config: dict  # of the mlx-lm model that holds the same values
    formats: dict  # last part of the tensor's stem (attn_q, token_embd, ...) -> block format; "*" is the default
    extra: dict = dataclasses.field(default_factory=dict)  # metadata beyond the usual keys
    stems: dict = dataclasses.field(default_factory=dict)  # module below a layer -> stem, before the usual ones
    rope_factors: bool = False  # llama 3.1 style rope_freqs tensor
    rotated: int | None = None  # elements of a head that turn, where the oracle's class turns all and the file says less
    permuted: bool = False  # rows of q and k lie as for pairwise rotation
    norms_plus_one: bool = False  # the file holds 1 + w
    sanitize: bool = False  # let the oracle see a file without lm_head: it ties the head then
    # A parameter's path -> its tensor in the file, before the usual names; None for those. Parameters of one tensor
    # lie behind each other in it, by rows.
    tensor_name: typing.Callable[[str], "str | None"] = lambda path: None
    vector: Parameter | None = None  # values of parameters of one axis, in f32; None for the usual ones
    # (path, shape, generator) -> an f32 parameter of any shape (as the file stores it, as mlx-lm holds it), or None.
    both: typing.Callable[[str, tuple, np.random.Generator], "tuple | None"] = lambda path, shape, rng: None
    # (path, a plane or the values of a matrix in the file's order) -> the same in mlx-lm's order.
    ordered: typing.Callable[[str, np.ndarray], np.ndarray] = lambda path, array: array
    dense: tuple = ()  # stems whose values mlx-lm gets as f32: their order cuts the groups of their format
    # Parameters without axes are no tensors in the file: their values, in lists of the metadata named by this prefix.
    scalar: typing.Callable[[str, np.random.Generator], float] | None = None
    scalars: str = ""
    tensors: dict = dataclasses.field(default_factory=dict)  # name -> f32 array of which the oracle knows nothing
    prompt: int = 21
    greedy_prompt: int = 21
    greedy_tokens: int = 32


BASE = {
    "hidden_size": 256,
    "num_hidden_layers": 3,
    "intermediate_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 96,
    "max_position_embeddings": 512,
    "rms_norm_eps": float(np.float32(1e-6)),
    "tie_word_embeddings": True,
}
LAYER_NORM_EPS = {"layer_norm_eps", "norm_epsilon", "norm_eps"}  # of families without rms_norm_eps
K_M = {"*": Type.Q4_K, "attn_v": Type.Q6_K, "ffn_down": Type.Q6_K, "token_embd": Type.Q6_K}


STEMS = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
TOP = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def _file_name(path: str, case: GgufCase) -> str:
    """A parameter path of mlx-lm -> the tensor name in the file."""
    if name := case.tensor_name(path):
        return name
    module, _, leaf = path.rpartition(".")
    if module in TOP:
        return f"{TOP[module]}.{leaf}"
    layer, rest = re.fullmatch(r"model\.layers\.(\d+)\.(.+)", module).groups()
    return f"blk.{layer}.{(STEMS | case.stems)[rest]}.{leaf}"


def _interleaved(rows: np.ndarray, heads: int) -> np.ndarray:
    """Row order of q and k in llama files: per head [2, D / 2] becomes [D / 2, 2]. Moves whole rows of any format."""
    return rows.reshape(heads, 2, -1, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def _metadata(writer: gguf.GGUFWriter, case: GgufCase) -> None:
    config, arch = case.config, writer.arch
    head = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(head)
    writer.add_value_length(head)
    if "rms_norm_eps" in config:
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    for key in LAYER_NORM_EPS & config.keys():
        writer.add_layer_norm_eps(config[key])
    # Nested by layer type, they are the case's own business; the flat keys count then.
    nested = config.get("rope_parameters", {})
    rope = nested if "rope_theta" in nested else config
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_rope_dimension_count(int(head * rope.get("partial_rotary_factor", 1)))
    writer.add_vocab_size(config["vocab_size"])
    if config.get("sliding_window") is not None:
        writer.add_sliding_window(config["sliding_window"])
    for key, value in case.extra.items():
        add = {
            int: writer.add_uint32,
            float: writer.add_float32,
            str: writer.add_string,
            bool: writer.add_bool,
            list: writer.add_array,
        }[type(value)]
        add(f"{arch}.{key}", value)


def _spread(path: str, columns: int) -> float:
    """Small embeddings: a tied head that sees mostly its own input would answer with that input for ever."""
    return 0.25 / np.sqrt(columns) if "embed_tokens" in path else 1.6 / np.sqrt(columns)


def _vector(case: GgufCase, path: str, shape: tuple, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A norm weight or bias: (as the file stores it, as mlx-lm holds it)."""
    if case.vector and (own := case.vector(path, shape, rng)) is not None:
        return own.astype(np.float32), own.astype(np.float32)
    if "norm" not in path or path.endswith(".bias"):
        bias = (0.15 * rng.standard_normal(shape)).astype(np.float32)
        return bias, bias
    stored = rng.uniform(0.5, 1.9, shape).astype(np.float32)
    if not case.norms_plus_one:
        return stored, stored
    # The file holds 1 + w. In [0.5, 2) both the subtraction here and mlx-lm's addition are exact.
    held = stored - np.float32(1)
    assert np.array_equal(held + np.float32(1), stored)
    return stored, held


def write(case: GgufCase, file: pathlib.Path, seed: int) -> nn.Module:
    """Writes the file and returns the f32 mlx-lm model of the same values."""
    rng = np.random.default_rng(seed)
    model_class, args_class = _get_classes(case.config)
    model = model_class(args_class.from_dict(case.config))
    if case.sanitize:
        model.sanitize({})
    writer = gguf.GGUFWriter(file, case.arch)
    _metadata(writer, case)
    weights, modes = _tensors(case, model, writer, rng)
    if case.rope_factors:
        _rope_factors(case, model, writer, rng)
    if case.rotated is not None:
        for layer in model.layers:
            layer.self_attn.rope.dims = case.rotated
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    nn.quantize(model, class_predicate=lambda path, _: modes.get(path, False))
    model.load_weights(list(weights.items()), strict=True)
    mx.eval(model.parameters())
    return model


def _matrix(
    kind: Type, path: str, shape: tuple, is_dense: bool, rng: np.random.Generator
) -> tuple[np.ndarray, dict, dict | None]:
    """A matrix or a stack of them: (as the file stores it, as mlx-lm holds it, how mlx-lm quantizes the module)."""
    stack, columns = shape[:-2], shape[-1]
    stored = gguf_blocks.random_rows(kind, int(np.prod(shape[:-1])), columns, _spread(path, columns), rng)
    planes = None if is_dense else gguf_blocks.planes(kind, stored)
    rows = stored.reshape(*shape[:-1], -1)
    if planes is None:
        return rows, {path: mx.array(gguf_blocks.exact(kind, stored)).reshape(shape)}, None
    module = path.removesuffix(".weight")
    held = {f"{module}.{plane}": array.reshape(*stack, -1, array.shape[-1]) for plane, array in planes.items()}
    mode = "mxfp4" if kind == Type.MXFP4 else "affine"
    return rows, held, {"group_size": 32, "bits": gguf_blocks.AFFINE_BITS.get(kind, 4), "mode": mode}


def _joined(name: str, parts: list[np.ndarray]) -> np.ndarray:
    """Matrices and biases lie behind each other, norms of single heads become rows."""
    if len(parts) == 1:
        return parts[0]
    if parts[0].ndim == 1:
        return np.stack(parts) if "norm" in name else np.concatenate(parts)
    return np.concatenate(parts, axis=-2)


def _tensors(case: GgufCase, model: nn.Module, writer: gguf.GGUFWriter, rng: np.random.Generator) -> tuple[dict, dict]:
    """Adds every tensor to the file; returns mlx-lm's parameters and the quantization of each quantized module."""
    weights, modes, tensors, lists = {}, {}, {}, {}
    heads = {"attn_q": case.config["num_attention_heads"], "attn_k": case.config["num_key_value_heads"]}
    for path, value in tree_flatten(model.parameters()):
        if value.ndim == 0:
            weights[path] = mx.array(case.scalar(path, rng), mx.float32)
            lists.setdefault(path.rpartition(".")[2], []).append(weights[path].item())
            continue
        name = _file_name(path, case)
        stem = name.split(".")[-2]
        kind = Type.F32 if value.ndim == 1 else case.formats.get(stem, case.formats["*"])
        if (pair := case.both(path, value.shape, rng)) is not None:
            kind, (stored, held) = Type.F32, pair
            weights[path] = mx.array(held)
        elif value.ndim == 1:
            stored, weights[path] = _vector(case, path, value.shape, rng)
            weights[path] = mx.array(weights[path])
        else:
            stored, held, mode = _matrix(kind, path, value.shape, stem in case.dense, rng)
            weights |= {plane: mx.array(case.ordered(path, np.array(array))) for plane, array in held.items()}
            if mode:
                modes[path.removesuffix(".weight")] = mode
        if case.permuted and stem in heads:
            stored = _interleaved(stored, heads[stem])
        tensors.setdefault(name, (kind, []))[1].append(stored)
    for name, (kind, parts) in tensors.items():
        stored = _joined(name, parts)
        writer.add_tensor(name, np.ascontiguousarray(stored), raw_dtype=kind)
    for name, values in lists.items():
        writer.add_array(f"{case.scalars}.{name}", values)
    for name, values in case.tensors.items():
        writer.add_tensor(name, np.asarray(values, dtype=np.float32), raw_dtype=Type.F32)
    return weights, modes


def _rope_factors(case: GgufCase, model: nn.Module, writer: gguf.GGUFWriter, rng: np.random.Generator) -> None:
    """Factors divide the inverse frequencies, that is, multiply the periods of mlx-lm's llama 3 rope."""
    dims = case.config["head_dim"]
    factors = np.sort(rng.uniform(1, 8, dims // 2)).astype(np.float32)
    writer.add_tensor("rope_freqs.weight", factors)
    periods = case.config["rope_theta"] ** (mx.arange(0, dims, 2) / dims)
    for layer in model.layers:
        scaling = {"factor": 8.0}
        layer.self_attn.rope = Llama3RoPE(dims, base=case.config["rope_theta"], scaling_config=scaling)
        layer.self_attn.rope._freqs = periods * mx.array(factors)
