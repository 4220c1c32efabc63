"""Trains small tokenizers, writes what Hugging Face's and Google's libraries make of a corpus, and the GGUF twins.

usage: make_fixtures.py OUT_FOLDER
"""

import json
import os
import pathlib
import random
import re
import sys
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import corpus

sys.path.append(str(pathlib.Path(__file__).parents[1] / "embed"))
import bert_gguf  # noqa: E402

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def words(digits):
    return rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*{TAIL}"


def cased(digits, suffix):
    start = r"[^\r\n\p{L}\p{N}]?"
    return (
        f"{start}{UPPER}*{LOWER}+{suffix}|{start}{UPPER}+{LOWER}*{suffix}|{digits}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*{TAIL}"
    )


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated", False)


def byte_level(use_regex=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


# The pre-tokenizers as the models' own tokenizer.json files spell them (not as the engine rebuilds them).
DEEPSEEK_V3 = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"""
    + TAIL
)
BYTE_LEVEL = {
    "gpt-2": ([byte_level(use_regex=True)], {}),
    "smollm": ([pre_tokenizers.Digits(individual_digits=True), byte_level(use_regex=True)], {}),
    "llama-bpe": ([split(words(r"\p{N}{1,3}")), byte_level()], {"ignore_merges": True, "bos": True}),
    "qwen2": ([split(words(r"\p{N}")), byte_level()], {"nfc": True}),
    "qwen35": (
        [
            split(
                rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*{TAIL}"
            ),
            byte_level(),
        ],
        {"nfc": True},
    ),
    "tekken": ([split(cased(r"\p{N}", "")), byte_level()], {"ignore_merges": True, "bos": True}),
    "gpt-4o": ([split(cased(r"\p{N}{1,3}", CONTRACTIONS + "?")), byte_level()], {}),
    "glm4": ([split(words(r"\p{N}{1,3}")), byte_level()], {"ignore_merges": True}),
    "dbrx": ([split(words(r"\p{N}{1,3}")), byte_level()], {}),
    "minicpm5": ([split(r"\p{N}{1,3}"), split(words(r"\p{N}+")), byte_level()], {"ignore_merges": True}),
    "deepseek-v3": ([split(r"\p{N}{1,3}"), split("[一-龥\u3040-ゟ゠-ヿ]+"), split(DEEPSEEK_V3), byte_level()], {}),
    "deepseek-coder": (
        [
            split(r"[\r\n]"),
            split(r"\s?\p{L}+"),
            split(r"\s?\p{P}+"),
            split("[一-龥ࠀ-一가-\ud7ff]+"),
            pre_tokenizers.Digits(individual_digits=True),
            byte_level(),
        ],
        {},
    ),
}
SPECIAL = ["<|bos|>", "<|im_start|>", "<|im_end|>"]
USER_DEFINED = ["<tool_call>"]


def cases_of(tokenizer, texts):
    cases = []
    for text in texts:
        for plain in (False, True):
            tokenizer.encode_special_tokens = plain
            for add in (False, True):
                ids = tokenizer.encode(text, add_special_tokens=add).ids
                cases.append({"text": text, "parse_special": not plain, "add_special": add, "ids": ids})
    tokenizer.encode_special_tokens = False
    return cases


def decodings_of(tokenizer, sequences):
    return [
        {"ids": ids, "skip_special": skip, "text": tokenizer.decode(ids, skip_special_tokens=skip)}
        for ids in sequences
        for skip in (True, False)
    ]


def gguf_of(tokenizer, **fields):
    """The metadata that a converter would write for this tokenizer."""
    data = json.loads(tokenizer.to_str())
    size = tokenizer.get_vocab_size()
    tokens = [tokenizer.id_to_token(i) for i in range(size)]
    types = [1] * size
    for token in data["added_tokens"]:
        types[token["id"]] = 3 if token["special"] else 4
    merges = [" ".join(m) for m in data["model"]["merges"]]
    return {"tokens": tokens, "token_types": types, "merges": merges, **fields}


def byte_level_suite(pre, rng, texts):
    steps, options = BYTE_LEVEL[pre]
    tokenizer = Tokenizer(models.BPE(ignore_merges=options.get("ignore_merges", False)))
    if options.get("nfc"):
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=alphabet, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(corpus.TRAINING, trainer)
    tokenizer.add_tokens([AddedToken(t, normalized=False, special=False) for t in USER_DEFINED])
    bos = options.get("bos", False)
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<|bos|> $A", special_tokens=[("<|bos|>", tokenizer.token_to_id("<|bos|>"))]
        )
    size = tokenizer.get_vocab_size()
    sequences = [[rng.randrange(size) for _ in range(rng.randint(1, 12))] for _ in range(60)]
    gguf = gguf_of(tokenizer, model="gpt2", pre=pre, bos_id=tokenizer.token_to_id("<|bos|>"))
    return {
        "name": pre,
        "json": tokenizer.to_str(),
        "gguf": gguf,
        "cases": cases_of(tokenizer, texts + ["a<tool_call>b <tool_call> c"]),
        "decodings": decodings_of(tokenizer, sequences),
    }


def train_sentencepiece(folder, **options):
    text = pathlib.Path(folder) / "corpus.txt"
    text.write_text("\n".join(line for text in corpus.TRAINING for line in text.splitlines()))
    prefix = pathlib.Path(folder) / "model"
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(prefix), hard_vocab_limit=False, minloglevel=2, **options
    )
    return prefix.with_suffix(".model").read_bytes()


def sentencepiece_cases(processor, texts, bos, eos):
    """What the library says; it never parses control tokens out of a text."""
    return [
        {
            "text": text,
            "parse_special": False,
            "add_special": add,
            "ids": processor.encode(text, add_bos=bos and add, add_eos=eos and add),
        }
        for text in texts
        for add in (False, True)
    ]


def normalised_alike(processor, charsmap, texts):
    """The texts of which both libraries make the same characters, blanks aside.

    A T5's rules map runs of characters. Google's library looks for the longest one at each place. That of Hugging Face takes
    a whole cluster of fewer than six bytes for the first rule that begins it, and so drops or leaves the rest of a cluster (a
    joiner behind a no-break space, a second mark on a letter). T5 models are served with the latter.
    """
    rules = normalizers.Precompiled(charsmap) if charsmap else None
    blanks = re.compile("[ ▁]+")

    def same(text):
        theirs = rules.normalize_str(text) if rules else text
        return blanks.sub("", theirs) == blanks.sub("", processor.normalize(text))

    alike = [text for text in texts if same(text)]
    assert len(alike) > len(texts) // 2, f"{len(texts) - len(alike)} of {len(texts)} texts left out"
    return alike


def sentencepiece_suite(name, rng, texts, model, bos, eos, **options):
    with tempfile.TemporaryDirectory() as folder:
        proto = train_sentencepiece(folder, **options)
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
    parsed = sentencepiece_model_pb2.ModelProto.FromString(proto)
    texts = normalised_alike(processor, parsed.normalizer_spec.precompiled_charsmap, texts)
    size = len(parsed.pieces)
    sequences = [[rng.randrange(3, size) for _ in range(rng.randint(1, 12))] for _ in range(60)]
    # A space that comes first as a byte: this library keeps it, transformers and llama.cpp take it for the one in front of
    # every text. We do as they do, and no tokenizer writes such a text.
    sequences = [ids for ids in sequences if parsed.pieces[ids[0]].piece != "<0x20>"]
    gguf = {
        "model": model,
        "tokens": [p.piece for p in parsed.pieces],
        "scores": [p.score for p in parsed.pieces],
        "token_types": [p.type for p in parsed.pieces],
        "bos_id": processor.bos_id() if processor.bos_id() >= 0 else None,
        "eos_id": processor.eos_id(),
        "unknown_id": processor.unk_id(),
        "add_space_prefix": parsed.normalizer_spec.add_dummy_prefix,
        "remove_extra_whitespaces": parsed.normalizer_spec.remove_extra_whitespaces,
        "precompiled_charsmap": list(parsed.normalizer_spec.precompiled_charsmap),
    }
    decodings = [{"ids": ids, "skip_special": True, "text": processor.decode(ids)} for ids in sequences]
    return {
        "name": name,
        "json": None,
        "gguf": gguf,
        "cases": sentencepiece_cases(processor, texts, bos, eos),
        "decodings": decodings,
    }


def gemma_style_suite(rng, texts):
    """Merges over raw text with byte fallback, as Gemma 4's file has it."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = split(r"[^\n]+|[\n]+")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    special = ["<pad>", "<eos>", "<bos>", "<unk>"] + [f"<0x{b:02X}>" for b in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(corpus.TRAINING, trainer)
    data = json.loads(tokenizer.to_str())
    data["added_tokens"] = [t for t in data["added_tokens"] if t["id"] < 4]
    tokenizer = Tokenizer.from_str(json.dumps(data))
    tokenizer.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 2)])
    gguf = gguf_of(tokenizer, model="gemma4", pre="gemma4", bos_id=2, unknown_id=3)
    for i in range(4, 260):
        gguf["token_types"][i] = 6
    ordinary = [i for i in range(260, tokenizer.get_vocab_size())]
    sequences = [[rng.choice(ordinary) for _ in range(rng.randint(1, 12))] for _ in range(40)]
    return {
        "name": "gemma4",
        "json": tokenizer.to_str(),
        "gguf": gguf,
        "cases": cases_of(tokenizer, texts),
        "decodings": decodings_of(tokenizer, sequences),
    }


def unigram_suite(rng, texts):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=400, special_tokens=["<unk>", "</s>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(corpus.TRAINING, trainer)
    sequences = [[rng.randrange(2, tokenizer.get_vocab_size()) for _ in range(8)] for _ in range(40)]
    # Only with parsing on: the library finds "</s>" in its lattice even when told that it is plain text.
    cases = [c for c in cases_of(tokenizer, texts) if c["parse_special"]]
    return {
        "name": "unigram",
        "json": tokenizer.to_str(),
        "gguf": None,
        "cases": cases,
        "decodings": decodings_of(tokenizer, sequences),
    }


# What BERT's own splitting of text turns on: limits of a word, marks, letters that change, blanks and controls of all kinds.
WORD_PIECE_TEXTS = [
    *("word" * 25 + tail for tail in ("", "s", "s and more")),
    "\u00e9" * 100,
    "\u00e9" * 101,
    "[CLS] [SEP] [MASK] [UNK] [PAD] [unused5] a[SEP]b [cls]",
    "Crème Brûlée, NAÏVE café; Ångström Ǆ İstanbul ıI ΣΑΣ straße ﬁ Ⅷ",
    "機械学習は楽しい。한국어 \u4e00\u3400\U00020000\uf900 中a文",
    "\u200b\u200d\u00ad\ufeff\ufffd\u0000\u001b a\u2028b\u3000c\u1680d\u0085e",
    "$1,000.50 + 20% = #tag @name a_b ~x `y` ^z |w| <v> ¿qué? «so» … — ‘q’ \u3001\uff01",
    "😀👍🏽 x👨‍👩‍👧‍👦y 🇩🇪",
    "▁word ▁ ##piece # ## ###",
]


def word_piece_suite(name, tokenizer, texts):
    """A BERT's tokenizer.json and what its GGUF twin holds. Texts come back changed, so only ids are compared."""
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokens, types = bert_gguf.vocabulary(tokenizer.to_str())
    special = {"cls_id": "[CLS]", "separator_id": "[SEP]", "unknown_id": "[UNK]"}
    gguf = {"model": "bert", "pre": "default", "tokens": tokens, "token_types": types}
    gguf |= {key: tokenizer.token_to_id(text) for key, text in special.items()}
    cases = cases_of(tokenizer, texts + WORD_PIECE_TEXTS)
    return {"name": name, "json": tokenizer.to_str(), "gguf": gguf, "cases": cases, "decodings": []}


def trained_word_piece_suite(texts, lowercase):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=700, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(corpus.TRAINING + WORD_PIECE_TEXTS[3:], trainer)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    suite = word_piece_suite("bert" if lowercase else "bert_cased", tokenizer, texts)
    if not lowercase:
        suite["gguf"]["lowercase"] = False
    return suite


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    seed = int(os.environ.get("GODWIT_TEST_SEED") or random.SystemRandom().randrange(1 << 31))
    print(f"seed {seed} (GODWIT_TEST_SEED repeats it)")
    rng = random.Random(seed)
    texts = corpus.TEXTS + corpus.random_texts(seed, 120)
    plain = [t for t in texts if "\0" not in t]
    spm = {"normalization_rule_name": "identity", "byte_fallback": True, "remove_extra_whitespaces": False}
    suites = [byte_level_suite(pre, rng, texts) for pre in BYTE_LEVEL]
    suites += [
        sentencepiece_suite("spm", rng, plain, "llama", True, False, model_type="bpe", vocab_size=700, **spm),
        sentencepiece_suite(
            "spm_no_prefix", rng, plain, "llama", True, False, model_type="bpe", vocab_size=700, add_dummy_prefix=False, **spm
        ),
        sentencepiece_suite("t5", rng, plain, "t5", False, True, model_type="unigram", vocab_size=400, bos_id=-1),
        gemma_style_suite(rng, texts),
        unigram_suite(rng, texts),
        trained_word_piece_suite(texts, lowercase=True),
        trained_word_piece_suite(texts, lowercase=False),
        word_piece_suite("bert_minilm", Tokenizer.from_file(f"{os.environ['GODWIT_MINILM']}/tokenizer.json"), texts),
    ]
    for suite in suites:
        (out / f"{suite['name']}.json").write_text(json.dumps(suite, ensure_ascii=True))
    (out / "index.json").write_text(json.dumps([s["name"] for s in suites]))
    print(f"{len(suites)} tokenizers, {len(texts)} texts")


main()
