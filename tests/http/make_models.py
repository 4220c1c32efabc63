"""Two tiny llama checkpoints with tokenizer and chat template, for the tests that talk to a real server.

    make_models.py OUTDIR

Both have one token per byte (id = byte) and two special tokens. `random` has random weights: its answers are noise, its
log-probabilities are compared with mlx-lm. `chain` is built by hand so that each token decides the next one: after the
generation prompt it spells ANSWER, whose characters take one to four tokens, and stops.
"""

import json
import pathlib
import sys

import numpy as np
from safetensors.numpy import save_file

SPECIAL = ["<|im_start|>", "<|im_end|>"]
IM_END = 257
VOCABULARY = 258
CONTEXT = 131072
# Every byte at most once, or the chain would not know where it is. The newline before it ends the generation prompt.
ANSWER = "a😸b作c"
TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('this template knows no tools') }}{% endif %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SEED = 20261130


def byte_characters() -> list[str]:
    """The character that stands for each byte in byte-level vocabularies."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    codes = {byte: byte for byte in printable} | {byte: 0x100 + i for i, byte in enumerate(others)}
    return [chr(codes[byte]) for byte in range(256)]


def tokenizer() -> dict:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "added_tokens": [{"id": 256 + i, "content": text, **flags} for i, text in enumerate(SPECIAL)],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": {c: i for i, c in enumerate(byte_characters())}, "merges": []},
    }


def config(hidden: int, layers: int) -> dict:
    return {
        "model_type": "llama",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "intermediate_size": 64,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
        "eos_token_id": IM_END,
    }


def shapes(c: dict) -> dict[str, tuple]:
    hidden, inner = c["hidden_size"], c["intermediate_size"]
    q, kv = c["num_attention_heads"] * c["head_dim"], c["num_key_value_heads"] * c["head_dim"]
    layer = {
        "self_attn.q_proj": (q, hidden),
        "self_attn.k_proj": (kv, hidden),
        "self_attn.v_proj": (kv, hidden),
        "self_attn.o_proj": (hidden, q),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
        "input_layernorm": (hidden,),
        "post_attention_layernorm": (hidden,),
    }
    names = {f"model.layers.{i}.{name}": shape for i in range(c["num_hidden_layers"]) for name, shape in layer.items()}
    ends = {"model.embed_tokens": (VOCABULARY, hidden), "model.norm": (hidden,), "lm_head": (VOCABULARY, hidden)}
    return names | ends


def random_weights(c: dict) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(SEED)
    print(f"random: seed {SEED}")
    return {
        name: 1 + 0.2 * rng.standard_normal(shape) if len(shape) == 1 else rng.standard_normal(shape) * 1.6 / shape[-1] ** 0.5
        for name, shape in shapes(c).items()
    }


def chain_weights(c: dict) -> dict[str, np.ndarray]:
    """One-hot embeddings, layers that add nothing, and a head that favours each token's successor."""
    weights = {name: (np.ones if len(shape) == 1 else np.zeros)(shape) for name, shape in shapes(c).items()}
    weights["model.embed_tokens"] = np.eye(VOCABULARY, c["hidden_size"])
    spelled = [ord("\n"), *ANSWER.encode(), IM_END]
    assert len(set(spelled)) == len(spelled)
    for token, successor in zip(spelled, spelled[1:]):
        weights["lm_head"][successor, token] = 1.0  # times sqrt(hidden) after the norm
    return weights


def write(folder: pathlib.Path, c: dict, weights: dict[str, np.ndarray]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(c, indent=1))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer(), ensure_ascii=False))
    text_config = {"chat_template": TEMPLATE, "eos_token": SPECIAL[1], "tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(text_config))
    save_file(
        {f"{name}.weight": values.astype(np.float32) for name, values in weights.items()},
        folder / "model.safetensors",
        metadata={"format": "mlx"},
    )


def main() -> None:
    out = pathlib.Path(sys.argv[1])
    small, wide = config(64, 2), config(288, 1)
    write(out / "random", small, random_weights(small))
    write(out / "chain", wide, chain_weights(wide))


if __name__ == "__main__":
    main()
