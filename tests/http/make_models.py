"""Tiny llama checkpoints with tokenizer and chat template, for the tests that talk to a real server.

    make_models.py OUTDIR

All have one token per byte (id = byte) and two special tokens. `random` has random weights: its answers are noise, its
log-probabilities are compared with mlx-lm. `chain` is built by hand so that each token decides the next one: after the
generation prompt it spells ANSWER, whose characters take one to four tokens, and stops. `caller` has tokens for whole
words beside; the end of its generation prompt tells it whether there are tools, or the result of one, and it thinks and
calls `add`, or tells the sum.
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
    "{% for m in messages %}{% if m.content == 'refuse' %}{{ raise_exception('this template refuses') }}{% endif %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SEED = 20261130
CALL = ["<think>", "\nI add.\n", "</think>", "\n\n<tool_call>\n", '{"name": "add", "arguments": ', '{"a": 1, ', '"b": 2}}', "\n</tool_call>"]
SUM = ["The sum ", "is 3."]
CALLER_TEMPLATE = (
    "{% if tools %}<|im_start|>system\nCall <tool_call>\n{\"name\": ..., \"arguments\": ...}\n</tool_call>"
    "{% for t in tools %}\n{{ t | tojson }}{% endfor %}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>\n{\"name\": \"{{ c.function.name }}\", "
    "\"arguments\": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant"
    "{{ '?' if messages[-1].role == 'tool' else '!' if tools else '\n' }}{% endif %}"
)


def byte_characters() -> list[str]:
    """The character that stands for each byte in byte-level vocabularies."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    codes = {byte: byte for byte in printable} | {byte: 0x100 + i for i, byte in enumerate(others)}
    return [chr(codes[byte]) for byte in range(256)]


def byte_level_text(text: str) -> str:
    characters = byte_characters()
    return "".join(characters[byte] for byte in text.encode())


def tokenizer(words: list[str] = ()) -> dict:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    vocabulary = {c: i for i, c in enumerate(byte_characters())}
    if words:
        vocabulary |= {text: 256 + i for i, text in enumerate(SPECIAL)}
        vocabulary |= {byte_level_text(word): VOCABULARY + i for i, word in enumerate(words)}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "added_tokens": [{"id": 256 + i, "content": text, **flags} for i, text in enumerate(SPECIAL)],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }


def config(hidden: int, layers: int, vocabulary: int = VOCABULARY) -> dict:
    return {
        "model_type": "llama",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "intermediate_size": 64,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "vocab_size": vocabulary,
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
    ends = {"model.embed_tokens": (c["vocab_size"], hidden), "model.norm": (hidden,), "lm_head": (c["vocab_size"], hidden)}
    return names | ends


def random_weights(c: dict) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(SEED)
    print(f"random: seed {SEED}")
    return {
        name: 1 + 0.2 * rng.standard_normal(shape) if len(shape) == 1 else rng.standard_normal(shape) * 1.6 / shape[-1] ** 0.5
        for name, shape in shapes(c).items()
    }


def chain_weights(c: dict, chains: list[list[int]]) -> dict[str, np.ndarray]:
    """One-hot embeddings, layers that add nothing, and a head that favours each token's successor."""
    weights = {name: (np.ones if len(shape) == 1 else np.zeros)(shape) for name, shape in shapes(c).items()}
    weights["model.embed_tokens"] = np.eye(c["vocab_size"], c["hidden_size"])
    spelled = [token for chain in chains for token in chain if token != IM_END]
    assert len(set(spelled)) == len(spelled)
    for chain in chains:
        for token, successor in zip(chain, chain[1:]):
            weights["lm_head"][successor, token] = 1.0  # times sqrt(hidden) after the norm
    return weights


def write(folder: pathlib.Path, c: dict, weights: dict[str, np.ndarray], words: list[str] = (), template: str = TEMPLATE) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(c, indent=1))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer(words), ensure_ascii=False))
    text_config = {"chat_template": template, "eos_token": SPECIAL[1], "tokenizer_class": "PreTrainedTokenizerFast"}
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
    answer = [ord("\n"), *ANSWER.encode(), IM_END]
    write(out / "chain", wide, chain_weights(wide, [answer]))
    words = CALL + SUM
    caller = config(288, 1, VOCABULARY + len(words))
    ids = [*range(VOCABULARY, VOCABULARY + len(words))]
    chains = [answer, [ord("!"), *ids[: len(CALL)], IM_END], [ord("?"), *ids[len(CALL) :], IM_END]]
    write(out / "caller", caller, chain_weights(caller, chains), words, CALLER_TEMPLATE)


if __name__ == "__main__":
    main()
