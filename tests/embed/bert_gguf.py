"""GGUF twins of BERT folders, as llama.cpp's converter writes them: names and special ids by the gguf package."""

import json
import pathlib
import sys

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import TokenType

sys.path.append(str(pathlib.Path(__file__).parents[1] / "oracle"))
import gguf_blocks  # noqa: E402

POOLING = {"mean": gguf.PoolingType.MEAN, "cls": gguf.PoolingType.CLS}
# The keys of converters before 2025, by the token's text; later ones call gguf.SpecialVocab.
EARLIER_IDS = {"cls": "[CLS]", "seperator": "[SEP]", "unknown": "[UNK]", "padding": "[PAD]", "mask": "[MASK]"}
# Read row by row and never quantized, or vectors.
ALWAYS_F32 = ("position_embd", "token_types", "norm", ".bias")


def vocabulary(tokenizer_json: str, size: int | None = None) -> tuple[list[str], list[int]]:
    """Tokens and types: a word start gets U+2581, a continuation loses its "##", control tokens stay."""
    data = json.loads(tokenizer_json)
    texts = {i: text for text, i in data["model"]["vocab"].items()}
    special = {token["id"] for token in data["added_tokens"] if token["special"]}
    tokens, types = [], []
    for i in range(size or len(texts)):
        text, kind = texts.get(i, f"[PAD{i}]"), TokenType.NORMAL if i in texts else TokenType.UNUSED
        if i in special:
            tokens.append(text)
            kind = TokenType.CONTROL
        else:
            tokens.append(text[2:] if text.startswith("##") else "\u2581" + text)
        types.append(int(kind))
    return tokens, types


def _add_tokenizer(writer: gguf.GGUFWriter, folder: pathlib.Path, size: int) -> None:
    tokens, types = vocabulary((folder / "tokenizer.json").read_text(), size)
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if (folder / "tokenizer_config.json").exists():
        gguf.SpecialVocab(folder, n_vocab=size).add_to_gguf(writer, quiet=True)
    else:
        for key, text in EARLIER_IDS.items():
            writer.add_uint32(f"tokenizer.ggml.{key}_token_id", tokens.index(text))


def _add_config(writer: gguf.GGUFWriter, config: dict, pooling: str | None) -> None:
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    if pooling:
        writer.add_pooling_type(POOLING[pooling])
    writer.add_token_type_count(config["type_vocab_size"])


def _stored(name: str, values: np.ndarray, kind: Type, rng: np.random.Generator | None) -> tuple[np.ndarray, np.ndarray, Type]:
    """What the file holds, its values, and the type. With `rng` the blocks are drawn, not made of the values."""
    if values.ndim == 1 or any(part in name for part in ALWAYS_F32):
        return values, values, Type.F32
    if rng is None:
        raw = gguf.quants.quantize(values, kind)
    else:
        raw = gguf_blocks.random_rows(kind, *values.shape, float(values.std()), rng)
    return raw, gguf_blocks.exact(kind, raw), kind


def write(folder: pathlib.Path, file: pathlib.Path, weights: dict, kind: Type = Type.F32, pooling: str | None = "mean", rng=None,
          change: dict | None = None, architecture: str = "bert") -> dict:
    """Writes the twin of `folder`, whose tensors are `weights`; returns the tensors with the values that it holds.

    `change`: metadata keys to set, or to leave out where the value is None."""
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(file, architecture)
    _add_config(writer, config, pooling)
    _add_tokenizer(writer, folder, config["vocab_size"])
    for key, value in (change or {}).items():
        for shard in writer.kv_data:
            shard.pop(key, None)
        if value is not None:
            {bool: writer.add_bool, int: writer.add_uint32, str: writer.add_string}[type(value)](key, value)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.BERT, config["num_hidden_layers"])
    held = {}
    for path, values in weights.items():
        path = path.removeprefix("bert.")
        if path.startswith("pooler.") or path.endswith("position_ids"):
            continue
        name = names.get_name(path, try_suffixes=(".weight", ".bias"))
        raw, held[path], stored = _stored(name, np.asarray(values, np.float32), kind, rng)
        writer.add_tensor(name, np.ascontiguousarray(raw), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return held
