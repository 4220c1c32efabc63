"""godwit embed on GGUF files of BERT-class encoders: the bits of the folder, and double precision over their blocks."""

import json
import pathlib
import shutil
import tempfile
import unittest

import bert_gguf
import bert_numpy
import numpy as np
import texts
import tiny_bert
from embed_test import COSINE, MINILM, SEED, cosine, embed, ids_of, vectors
from gguf import GGMLQuantizationType as Type
from safetensors.numpy import load_file
from tokenizers import Tokenizer, normalizers

GIVEN = ["w1 w2 w3", "w7", "W1, w2! w9ab é zzz", "", "w4 " * 200, "[CLS] w1 [MASK]", "w" * 101]
# Rows of whole K-quant blocks.
WIDE = tiny_bert.CONFIG | {"hidden_size": 256, "intermediate_size": 512}


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)


class Tiny(Folder):
    def twin(self, name="twin.gguf", pooling="mean", **options):
        source = self.folder / pooling
        if not source.exists():
            self.weights = tiny_bert.write(source, SEED, pooling)
        return bert_gguf.write(source, self.folder / name, self.weights, pooling=options.pop("written", pooling), **options)

    def test_a_file_in_f32_has_the_bits_of_its_folder(self):
        for pooling in ("mean", "cls"):
            self.twin(pooling=pooling)
            want, got = vectors(self.folder / pooling, GIVEN), vectors(self.folder / "twin.gguf", GIVEN)
            self.assertEqual(want[0]["tokens"], got[0]["tokens"])
            self.assertTrue(np.array_equal(want[1], got[1]), pooling)

    def test_a_file_that_names_no_pooling_is_read_as_a_folder_without_modules(self):
        self.twin(written=None)
        (self.folder / "mean" / "modules.json").unlink()
        self.assertTrue(np.array_equal(vectors(self.folder / "mean", GIVEN)[1], vectors(self.folder / "twin.gguf", GIVEN)[1]))

    def test_blocks_of_every_kind_equal_double_precision_over_their_values(self):
        print(f"seed {SEED}")
        source = self.folder / "wide"
        weights = tiny_bert.write(source, SEED, config=WIDE)
        for kind in (Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q5_1, Type.Q4_K, Type.Q6_K, Type.IQ4_NL):
            file = self.folder / f"{kind.name}.gguf"
            held = bert_gguf.write(source, file, weights, kind, rng=np.random.default_rng(SEED))
            _, got = vectors(file, GIVEN)
            for text, vector in zip(GIVEN, got):
                ids = ids_of(source, text, WIDE["max_position_embeddings"])
                want = bert_numpy.pooled(bert_numpy.hidden_states(held, WIDE, ids))
                # The blocks are exact in f32, so only sums are off: 2^-24 of parts of about 0.3, times the root of the few
                # thousand roundings on the way. The tanh form of GELU is ten times as far.
                self.assertGreater(cosine(vector, want), COSINE, (kind.name, text))
                self.assertLess(np.abs(vector - want).max(), 1e-6, (kind.name, text))

    def test_letter_case_follows_the_file_and_a_lost_one_is_warned_of(self):
        source = self.folder / "mean"
        self.twin()
        tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
        data = json.loads(tokenizer.to_str())
        data["model"]["vocab"] = {text.replace("w1", "W1"): i for text, i in data["model"]["vocab"].items()}
        (source / "tokenizer.json").write_text(json.dumps(data))
        lower = {"tokenizer.ggml.normalizer.lowercase": False}
        self.twin("cased.gguf", change=lower)
        self.twin("silent.gguf")
        given = ["W1 w2", "w1 W2", "W1 é"]
        want = vectors(source, given)[1]
        self.assertTrue(np.array_equal(want, vectors(self.folder / "cased.gguf", given)[1]))
        self.assertFalse(np.array_equal(want, vectors(self.folder / "silent.gguf", given)[1]))
        self.assertIn("'W1'", self.warnings("silent.gguf"))
        self.assertNotIn("capital", self.warnings("cased.gguf"))
        self.assertNotIn("capital", self.warnings("twin.gguf"))

    def warnings(self, name):
        return embed(self.folder / name, "-v", "-p", "w1", stderr=True)

    def test_later_and_earlier_keys_of_the_special_tokens(self):
        self.twin()
        want = vectors(self.folder / "twin.gguf", GIVEN)[1]
        keys = "tokenizer.ggml."
        for change in ({keys + "cls_token_id": None, keys + "bos_token_id": 2},
                       {keys + "seperator_token_id": None, keys + "separator_token_id": 3},
                       {keys + "pre": "jina-v2-en"}, {keys + "add_bos_token": False}, {keys + "token_type": None}):
            self.twin("other.gguf", change=change)
            self.assertTrue(np.array_equal(want, vectors(self.folder / "other.gguf", GIVEN)[1]), change)

    def refusal(self, **options):
        self.twin("refused.gguf", **options)
        return embed(self.folder / "refused.gguf", "-p", "w1", fails=1)

    def test_what_cannot_be_served_is_named(self):
        keys = "tokenizer.ggml."
        for key in ("cls_token_id", "seperator_token_id", "unknown_token_id"):
            self.assertIn(f"{keys}{key} is absent", self.refusal(change={keys + key: None}))
            self.assertIn(f"{keys}{key} is 60", self.refusal(change={keys + key: 60}))
        for number, name in ((0, "none"), (3, "last"), (4, "rank"), (9, "unknown")):
            self.assertIn(f"bert.pooling_type is {number} ({name})", self.refusal(change={"bert.pooling_type": number}))
        self.assertIn("bert.attention.causal is true", self.refusal(change={"bert.attention.causal": True}))
        self.assertIn("tokenizer.ggml.model is 't5'", self.refusal(change={keys + "model": "t5"}))
        self.assertIn("carries no vocabulary", self.refusal(change={keys + "tokens": None}))
        self.assertIn("bert.block_count", self.refusal(change={"bert.block_count": None}))
        for architecture in ("nomic-bert", "jina-bert-v2"):
            self.assertIn(f"architecture {architecture}", self.refusal(architecture=architecture))
        self.weights.pop("encoder.layer.1.output.LayerNorm.bias")
        self.assertIn("mlp_norm.bias", self.refusal())


class MiniLm(Folder):
    def test_f32_has_the_bits_of_the_folder_and_agrees_with_double_precision(self):
        config, weights = json.loads((MINILM / "config.json").read_text()), load_file(MINILM / "model.safetensors")
        file = self.folder / "minilm-f32.gguf"
        bert_gguf.write(MINILM, file, weights)
        # The folder cuts a text to 256 tokens; a GGUF file cannot say so and reads as many as there are positions.
        short = [text for text in texts.TEXTS if len(ids_of(MINILM, text, 512)) <= 256] + ["", "x" * 101, "Ⅷ ﬁ İ 한국어"]
        self.assertEqual(len(short), len(texts.TEXTS) + 2)
        want, got = vectors(MINILM, short), vectors(file, short)
        self.assertEqual(want[0]["tokens"], got[0]["tokens"])
        self.assertTrue(np.array_equal(want[1], got[1]))
        for text, vector in zip(texts.TEXTS, vectors(file, texts.TEXTS)[1]):
            ids = ids_of(MINILM, text, 512)
            self.assertGreater(cosine(vector, bert_numpy.pooled(bert_numpy.hidden_states(weights, config, ids))), COSINE, text)

    def test_q8_0_is_as_near_as_its_blocks(self):
        config, weights = json.loads((MINILM / "config.json").read_text()), load_file(MINILM / "model.safetensors")
        file = self.folder / "minilm-q8_0.gguf"
        held = bert_gguf.write(MINILM, file, weights, Type.Q8_0)
        # Each matrix is off by a part r of its size, independently of the others, and norms keep the size of what goes
        # through: the hidden states are off by about sqrt(sum r^2) of theirs. Twice that is allowed, for what attention
        # makes larger; a cosine of 1 - e^2/2 is an error of e.
        part = [np.linalg.norm(held[name] - weights[name]) / np.linalg.norm(weights[name]) for name in held]
        bound = 1 - (2 * np.sqrt(np.square(part).sum())) ** 2 / 2
        given = [text for text in texts.TEXTS if len(text) < 1000]
        got, full = vectors(file, given)[1], vectors(MINILM, given)[1]
        nearest = min(cosine(a, b) for a, b in zip(got, full))
        print(f"Q8_0: a cosine of {nearest:.6f} and above, bound {bound:.6f}")
        self.assertGreater(bound, 0.99)
        self.assertGreater(nearest, bound)
        for text, vector in zip(given, got):
            want = bert_numpy.pooled(bert_numpy.hidden_states(held, config, ids_of(MINILM, text, 512)))
            self.assertGreater(cosine(vector, want), COSINE, text)


if __name__ == "__main__":
    unittest.main()
