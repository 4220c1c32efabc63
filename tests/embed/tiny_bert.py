"""Tiny random BERT folders in the layout of sentence-transformers."""

import json
import pathlib

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

CONFIG = {
    "model_type": "bert",
    "architectures": ["BertModel"],
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
    "vocab_size": 60,
}
_WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{i}" for i in range(30)] + [f"##{c}" for c in "abcdefghij"]


def _tokenizer() -> Tokenizer:
    vocabulary = {word: i for i, word in enumerate(_WORDS)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    return tokenizer


def _weights(rng: np.random.Generator, prefix: str, c: dict) -> dict[str, np.ndarray]:
    weights = {}

    def add(name, *shape, centre=0.0, spread=None):
        spread = 1.2 / np.sqrt(shape[-1]) if spread is None else spread
        weights[prefix + name] = (centre + spread * rng.standard_normal(shape)).astype(np.float32)

    def norm(path):
        add(f"{path}.weight", c["hidden_size"], centre=1.0, spread=0.3)
        add(f"{path}.bias", c["hidden_size"], spread=0.2)

    def dense(path, outputs, inputs):
        add(f"{path}.weight", outputs, inputs)
        add(f"{path}.bias", outputs, spread=0.2)

    h, inner = c["hidden_size"], c["intermediate_size"]
    for name, rows in (("word", c["vocab_size"]), ("position", c["max_position_embeddings"]), ("token_type", 2)):
        add(f"embeddings.{name}_embeddings.weight", rows, h, spread=1.0)
    norm("embeddings.LayerNorm")
    for i in range(c["num_hidden_layers"]):
        path = f"encoder.layer.{i}"
        for name in ("query", "key", "value"):
            dense(f"{path}.attention.self.{name}", h, h)
        dense(f"{path}.attention.output.dense", h, h)
        norm(f"{path}.attention.output.LayerNorm")
        dense(f"{path}.intermediate.dense", inner, h)
        dense(f"{path}.output.dense", h, inner)
        norm(f"{path}.output.LayerNorm")
    dense("pooler.dense", h, h)  # in every file, no part of the embedding
    return weights


def write(folder: pathlib.Path, seed: int, pooling: str = "mean", normalize: bool = True, prefix: str = "", config: dict = CONFIG) -> dict:
    """Writes the folder and returns the weights by the names in the file."""
    folder.mkdir(parents=True)
    weights = _weights(np.random.default_rng(seed), prefix, config)
    extra = {f"{prefix}embeddings.position_ids": np.arange(config["max_position_embeddings"])[None]}
    save_file(weights | extra, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    _tokenizer().save(str(folder / "tokenizer.json"))
    modules = ["Transformer", "Pooling"] + (["Normalize"] if normalize else [])
    paths = ["", "1_Pooling", "2_Normalize"]
    types = [{"idx": i, "path": paths[i], "type": f"sentence_transformers.models.{m}"} for i, m in enumerate(modules)]
    (folder / "modules.json").write_text(json.dumps(types))
    (folder / "1_Pooling").mkdir()
    way = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens"}[pooling]
    ways = {f"pooling_mode_{name}": name == way for name in ("mean_tokens", "cls_token", "max_tokens", "mean_sqrt_len_tokens")}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": config["hidden_size"]} | ways))
    return weights
