"""SmolLM2 itself: its GGUF file as an mlx-lm checkpoint, and what mlx-lm answers to a chat prompt.

    convert_smollm2.py OUTDIR [--gguf FILE]        (FILE defaults to $GODWIT_SMOLLM2_GGUF)

The reader is the gguf package, the planes come from gguf_blocks.py, the tokenizer is built from the file's metadata with
the tokenizers package, and transformers renders the file's own template: nothing of Godwit is involved. The conversion is
kept in OUTDIR and repeated only when the file or these scripts change; the answer is computed anew in every run.
"""

import argparse
import hashlib
import json
import os
import pathlib
import sys

import environment

VERSIONS = environment.require()

import gguf  # noqa: E402
import mlx.core as mx  # noqa: E402
import numpy as np  # noqa: E402
import tokenizers  # noqa: E402
import transformers  # noqa: E402
from gguf import GGMLQuantizationType as Type  # noqa: E402
from mlx_lm.models.cache import make_prompt_cache  # noqa: E402
from mlx_lm.utils import load_model  # noqa: E402

import expectations  # noqa: E402
import gguf_blocks  # noqa: E402
import gguf_cases  # noqa: E402

CHAT = [{"role": "user", "content": "Why is the sky blue? Answer in two sentences."}]
TOKENS = 48
CONTROL = 3  # tokenizer.ggml.token_type


def fields(reader: gguf.GGUFReader) -> dict:
    return {name: field.contents() for name, field in reader.fields.items()}


def config_of(meta: dict) -> dict:
    """The llama config that the file's metadata describes."""
    return {
        "model_type": "llama",
        "hidden_size": meta["llama.embedding_length"],
        "num_hidden_layers": meta["llama.block_count"],
        "intermediate_size": meta["llama.feed_forward_length"],
        "num_attention_heads": meta["llama.attention.head_count"],
        "num_key_value_heads": meta["llama.attention.head_count_kv"],
        "rms_norm_eps": float(meta["llama.attention.layer_norm_rms_epsilon"]),
        "vocab_size": meta["llama.vocab_size"],
        "max_position_embeddings": meta["llama.context_length"],
        "rope_theta": float(meta["llama.rope.freq_base"]),
        "tie_word_embeddings": True,
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
    }


def half_split(rows: np.ndarray, heads: int) -> np.ndarray:
    """The inverse of the converter's row order of q and k: per head [D / 2, 2] becomes [2, D / 2]."""
    return rows.reshape(heads, -1, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def module_of(name: str) -> str:
    """blk.3.attn_q -> model.layers.3.self_attn.q_proj"""
    top = {stem: module for module, stem in gguf_cases.TOP.items()}
    if name in top:
        return top[name]
    _, layer, stem = name.split(".")
    rest = {stem: module for module, stem in gguf_cases.STEMS.items()}[stem]
    return f"model.layers.{layer}.{rest}"


def convert(reader: gguf.GGUFReader, config: dict, folder: pathlib.Path) -> None:
    """Writes the checkpoint: affine planes with f32 scales, everything else f32."""
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    weights, quantization = {}, {"group_size": 32, "bits": 4, "mode": "affine"}
    for tensor in reader.tensors:
        name = tensor.name.removesuffix(".weight")
        module, stem, raw = module_of(name), name.split(".")[-1], tensor.data
        if stem in heads:
            raw = half_split(raw, heads[stem])
        planes = None if tensor.tensor_type == Type.F32 else gguf_blocks.planes(tensor.tensor_type, raw)
        if planes is None:
            planes = {"weight": mx.array(gguf_blocks.exact(tensor.tensor_type, raw))}
        else:
            quantization[module] = {"group_size": 32, "bits": gguf_blocks.AFFINE_BITS[tensor.tensor_type]}
        weights |= {f"{module}.{plane}": array for plane, array in planes.items()}
    folder.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(config | {"quantization": quantization}, indent=1))


def tokenizer_of(meta: dict) -> transformers.PreTrainedTokenizerFast:
    """Byte-level BPE whose pre-tokenizer first isolates digits: what `tokenizer.ggml.pre` = smollm stands for."""
    if (meta["tokenizer.ggml.model"], meta["tokenizer.ggml.pre"]) != ("gpt2", "smollm"):
        sys.exit("this script knows the tokenizer of SmolLM2 only")
    texts = meta["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in meta["tokenizer.ggml.merges"]]
    vocabulary = {text: index for index, text in enumerate(texts)}
    core = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, merges))
    core.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Digits(individual_digits=True),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    core.decoder = tokenizers.decoders.ByteLevel()
    kinds = meta["tokenizer.ggml.token_type"]
    core.add_special_tokens([text for text, kind in zip(texts, kinds) if kind == CONTROL])
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=core, clean_up_tokenization_spaces=False)
    wrapped.chat_template = meta["tokenizer.chat_template"]
    return wrapped


def stamp_of(file: pathlib.Path) -> str:
    """Changes whenever the conversion could."""
    digest = hashlib.sha256(json.dumps(VERSIONS).encode())
    for source in (file, *sorted(pathlib.Path(__file__).parent.glob("*.py"))):
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("outdir", type=pathlib.Path)
    parser.add_argument("--gguf", default="")
    arguments = parser.parse_args()
    path = os.environ.get("GODWIT_SMOLLM2_GGUF") or arguments.gguf
    if not path or not pathlib.Path(path).is_file():
        sys.exit(
            f"SmolLM2 is not there (looked for: {path or 'no path given'}). './dev test' fetches it; by hand: "
            "./dev setup smollm2, then set GODWIT_SMOLLM2_GGUF to the .gguf file."
        )
    mx.set_default_device(mx.cpu)
    file = pathlib.Path(path).resolve()
    reader = gguf.GGUFReader(file)
    meta = fields(reader)
    folder, stamp = arguments.outdir / "model", arguments.outdir / "stamp"
    wanted = stamp_of(file)
    if not stamp.is_file() or stamp.read_text() != wanted:
        stamp.unlink(missing_ok=True)
        convert(reader, config_of(meta), folder)
        stamp.write_text(wanted)
    model, _ = load_model(folder)
    answer(model, tokenizer_of(meta), file, arguments.outdir)


def answer(model, tokenizer, file: pathlib.Path, outdir: pathlib.Path) -> None:
    prompt_text = tokenizer.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True)
    prompt = tokenizer(prompt_text, add_special_tokens=False)["input_ids"]
    logits = model(mx.array([prompt]), cache=make_prompt_cache(model))[0]
    mx.save_safetensors(str(outdir / "expected.safetensors"), {"whole": logits})
    tokens = expectations.greedy(model, prompt, TOKENS)
    text = tokenizer.decode(tokens, skip_special_tokens=True)
    description = {
        "gguf": str(file),
        "model": "model",
        "versions": VERSIONS,
        "chat": CHAT,
        "prompt_text": prompt_text,
        "prompt": prompt,
        "greedy_tokens": tokens,
        "text": text,
    }
    (outdir / "case.json").write_text(json.dumps(description, indent=1))
    print(f"{len(prompt)} prompt tokens; mlx-lm answers: {text!r}")


if __name__ == "__main__":
    main()
