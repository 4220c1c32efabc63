"""Tiny GGUF files in the form converters write them, and the mlx-lm model that holds exactly the same values in f32."""

import dataclasses
import pathlib
import re

import gguf
import mlx.core as mx
import mlx.nn as nn
import numpy as np
from gguf import GGMLQuantizationType as Type
from mlx.utils import tree_flatten
from mlx_lm.models.rope_utils import Llama3RoPE
from mlx_lm.utils import _get_classes

import gguf_blocks


@dataclasses.dataclass(frozen=True)
class GgufCase:
    name: str
    family: str  # mlx-lm's model_type
    config: dict
    formats: dict  # last part of the tensor's stem (attn_q, token_embd, ...) -> block format; "*" is the default
    extra: dict = dataclasses.field(default_factory=dict)  # metadata beyond the usual keys
    rope_factors: bool = False  # llama 3.1 style rope_freqs tensor

    @property
    def group(self) -> str:
        return f"{self.family}_gguf"


_BASE = {
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
_LLAMA = _BASE | {"model_type": "llama", "head_dim": 64, "rope_theta": 5e5}
_QWEN2 = _BASE | {"model_type": "qwen2", "rope_theta": 1e6}
_QWEN3 = _BASE | {"model_type": "qwen3", "head_dim": 64, "rope_theta": 1e6}
# Hidden 512: its square root is rounded by the bf16 constant, which a hidden size of 256 would hide.
_GEMMA = _BASE | {
    "model_type": "gemma3_text",
    "hidden_size": 512,
    "num_hidden_layers": 7,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "sliding_window": 8,
    "sliding_window_pattern": 3,
    "query_pre_attn_scalar": 64,
    "rope_theta": 1e6,
    "rope_local_base_freq": 1e4,
}
_K_M = {"*": Type.Q4_K, "attn_v": Type.Q6_K, "ffn_down": Type.Q6_K, "token_embd": Type.Q6_K}


def all_cases() -> list[GgufCase]:
    return [
        GgufCase("gguf-llama-f32", "llama", _LLAMA | {"tie_word_embeddings": False}, {"*": Type.F32}),
        GgufCase("gguf-llama-f16", "llama", _LLAMA, {"*": Type.F16}),
        GgufCase("gguf-llama-bf16", "llama", _LLAMA, {"*": Type.BF16}),
        GgufCase("gguf-llama-q4_0", "llama", _LLAMA, {"*": Type.Q4_0}),
        GgufCase("gguf-llama-q4_1", "llama", _LLAMA, {"*": Type.Q4_1, "token_embd": Type.Q8_0}),
        GgufCase("gguf-llama-q4_k_m", "llama", _LLAMA | {"tie_word_embeddings": False}, _K_M | {"output": Type.Q6_K}),
        GgufCase("gguf-llama-rope-factors", "llama", _LLAMA, {"*": Type.Q8_0}, rope_factors=True),
        GgufCase("gguf-qwen2-q5", "qwen2", _QWEN2, {"*": Type.Q5_0, "attn_v": Type.Q5_1, "ffn_down": Type.Q8_0}),
        GgufCase("gguf-qwen2-q4_k_m", "qwen2", _QWEN2 | {"tie_word_embeddings": False}, _K_M | {"output": Type.Q8_0}),
        GgufCase("gguf-qwen3-q5_k_m", "qwen3", _QWEN3, {"*": Type.Q5_K, "attn_v": Type.Q6_K, "token_embd": Type.Q6_K}),
        GgufCase("gguf-qwen3-q4_k_m", "qwen3", _QWEN3, _K_M),
        GgufCase(
            "gguf-qwen3-rare",
            "qwen3",
            _QWEN3,
            {
                "*": Type.Q3_K,
                "attn_q": Type.Q2_K,
                "attn_k": Type.IQ4_NL,
                "attn_v": Type.IQ4_XS,
                "ffn_up": Type.MXFP4,
                "token_embd": Type.Q5_K,
            },
        ),
        GgufCase(
            "gguf-gemma3-q4_k_m",
            "gemma3_text",
            _GEMMA,
            _K_M | {"ffn_gate": Type.Q5_0},
            extra={"attention.sliding_window_pattern": 3},
        ),
        # As most converters write it: no pattern key, which means every sixth layer is full; a linear factor.
        GgufCase(
            "gguf-gemma3-q8_0",
            "gemma3_text",
            _GEMMA | {"sliding_window_pattern": 6, "rope_scaling": {"type": "linear", "factor": 6.0}},
            {"*": Type.Q8_0},
            extra={"rope.scaling.type": "linear", "rope.scaling.factor": 6.0},
        ),
    ]


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
_GEMMA_STEMS = {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
TOP = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def _file_name(path: str, family: str) -> str:
    """A parameter path of mlx-lm -> the tensor name in the file."""
    module, _, leaf = path.rpartition(".")
    if module in TOP:
        return f"{TOP[module]}.{leaf}"
    layer, rest = re.fullmatch(r"model\.layers\.(\d+)\.(.+)", module).groups()
    stems = STEMS | (_GEMMA_STEMS if family == "gemma3_text" else {})
    return f"blk.{layer}.{stems[rest]}.{leaf}"


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
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_rope_dimension_count(head)
    writer.add_vocab_size(config["vocab_size"])
    if "sliding_window" in config:
        writer.add_sliding_window(config["sliding_window"])
    for key, value in case.extra.items():
        add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}[type(value)]
        add(f"{arch}.{key}", value)


def _spread(path: str, columns: int) -> float:
    """Small embeddings: a tied head that sees mostly its own input would answer with that input for ever."""
    return 0.25 / np.sqrt(columns) if "embed_tokens" in path else 1.6 / np.sqrt(columns)


def _vector(path: str, shape: tuple, family: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A norm weight or bias: (as the file stores it, as mlx-lm holds it)."""
    if "norm" not in path:
        bias = (0.15 * rng.standard_normal(shape)).astype(np.float32)
        return bias, bias
    stored = rng.uniform(0.5, 1.9, shape).astype(np.float32)
    if family != "gemma3_text":
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
    if case.family == "gemma3_text":
        model.sanitize({})
    arch = {"gemma3_text": "gemma3"}.get(case.family, case.family)
    writer = gguf.GGUFWriter(file, arch)
    _metadata(writer, case)
    weights, modes = _tensors(case, model, writer, rng)
    if case.rope_factors:
        _rope_factors(case, model, writer, rng)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    nn.quantize(model, class_predicate=lambda path, _: modes.get(path, False))
    model.load_weights(list(weights.items()), strict=True)
    mx.eval(model.parameters())
    return model


def _tensors(case: GgufCase, model: nn.Module, writer: gguf.GGUFWriter, rng: np.random.Generator) -> tuple[dict, dict]:
    """Adds every tensor to the file; returns mlx-lm's parameters and the quantization of each quantized module."""
    weights, modes = {}, {}
    heads = {"attn_q": case.config["num_attention_heads"], "attn_k": case.config["num_key_value_heads"]}
    for path, value in tree_flatten(model.parameters()):
        name = _file_name(path, case.family)
        stem = name.split(".")[-2]
        if value.ndim == 1:
            stored, held = _vector(path, value.shape, case.family, rng)
            weights[path] = mx.array(held)
            kind = Type.F32
        else:
            kind = case.formats.get(stem, case.formats["*"])
            stored = gguf_blocks.random_rows(kind, *value.shape, _spread(path, value.shape[1]), rng)
            module = path.removesuffix(".weight")
            planes = gguf_blocks.planes(kind, stored)
            if planes is None:
                weights[path] = mx.array(gguf_blocks.exact(kind, stored))
            else:
                weights |= {f"{module}.{plane}": array for plane, array in planes.items()}
                mode = "mxfp4" if kind == Type.MXFP4 else "affine"
                modes[module] = {"group_size": 32, "bits": gguf_blocks.AFFINE_BITS.get(kind, 4), "mode": mode}
        if case.family == "llama" and stem in heads:
            stored = _interleaved(stored, heads[stem])
        writer.add_tensor(name, np.ascontiguousarray(stored), raw_dtype=kind)
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
