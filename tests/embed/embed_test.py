"""godwit embed against BERT in double precision: tiny random encoders, and all-MiniLM-L6-v2."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import bert_numpy
import numpy as np
import texts
import tiny_bert
from safetensors.numpy import load_file
from tokenizers import Tokenizer

BINARY = os.environ["GODWIT_BINARY"]
MINILM = pathlib.Path(os.environ["GODWIT_MINILM"])
SEED = 20261130
# A vector of length 1 whose parts are off by e has a cosine of 1 - e^2/2 at worst; f32 sums of a few hundred products
# keep 5 digits, so this bound is met with room and one wrong head, norm or position is far outside.
COSINE = 0.9999


def embed(model, *arguments, stdin=b"", fails=None, stderr=False):
    done = subprocess.run([BINARY, "embed", "-m", str(model), *arguments], input=stdin, capture_output=True, timeout=120)
    if fails is not None:
        assert done.returncode == fails, (done.returncode, done.stderr)
        return done.stderr.decode()
    assert done.returncode == 0, done.stderr
    return (done.stderr if stderr else done.stdout).decode()


def vectors(model, given):
    answer = json.loads(embed(model, "--json", *[part for text in given for part in ("-p", text)]))
    return answer, np.array(answer["embeddings"])


def ids_of(folder, text, most):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # words that spell control tokens are text
    tokenizer.enable_truncation(most)
    return tokenizer.encode(text).ids


def cosine(a, b):
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


class Tiny(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def test_every_pooling_equals_double_precision(self):
        for pooling, normalize, prefix in [("mean", True, ""), ("cls", True, "bert."), ("max", False, "")]:
            folder = self.folder / pooling
            weights = tiny_bert.write(folder, SEED, pooling, normalize, prefix)
            given = ["w1 w2 w3", "w7", "w9ab w1 zzz " * 20]
            answer, got = vectors(folder, given)
            self.assertEqual(answer["dimensions"], tiny_bert.CONFIG["hidden_size"])
            for text, vector in zip(given, got):
                ids = ids_of(folder, text, tiny_bert.CONFIG["max_position_embeddings"])
                hidden = bert_numpy.hidden_states(weights, tiny_bert.CONFIG, ids)
                want = bert_numpy.pooled(hidden, pooling, normalize)
                # f32 against f64 over three layers with norms of size 1: 2^-24 times about a thousand roundings.
                self.assertLess(np.abs(vector - want).max(), 1e-4 * max(1, np.abs(want).max()), (pooling, text, SEED))
                self.assertGreater(cosine(vector, want), COSINE)

    def test_a_vector_does_not_depend_on_the_other_texts(self):
        folder = self.folder / "m"
        tiny_bert.write(folder, SEED)
        _, together = vectors(folder, ["w1 w2", "w3", "w4 w5 w6"])
        for i, text in enumerate(["w1 w2", "w3", "w4 w5 w6"]):
            self.assertTrue(np.array_equal(vectors(folder, [text])[1][0], together[i]))

    def test_lines_of_a_file_and_plain_output(self):
        folder = self.folder / "m"
        tiny_bert.write(folder, SEED)
        lines = embed(folder, "--file", "-", stdin=b"w1 w2\r\n\nw3\n").splitlines()
        want = vectors(folder, ["w1 w2", "w3"])[1]
        self.assertEqual(len(lines), 2)
        self.assertTrue(np.array_equal(np.array([line.split() for line in lines], np.float32), want.astype(np.float32)))

    def test_what_cannot_be_served_is_named(self):
        folder = self.folder / "m"
        tiny_bert.write(folder, SEED)
        self.assertIn("godwit embed", self.generate(folder))
        modules = json.loads((folder / "modules.json").read_text())
        (folder / "modules.json").write_text(json.dumps(modules + [{"idx": 3, "path": "3", "type": "x.models.Dense"}]))
        self.assertIn("'Dense'", embed(folder, "-p", "w1", fails=1))
        (folder / "modules.json").write_text(json.dumps(modules))
        pooling = json.loads((folder / "1_Pooling" / "config.json").read_text()) | {"pooling_mode_cls_token": True}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
        self.assertIn("2 are on", embed(folder, "-p", "w1", fails=1))
        (folder / "config.json").write_text(json.dumps(tiny_bert.CONFIG | {"position_embedding_type": "relative_key"}))
        self.assertIn("relative_key", embed(folder, "-p", "w1", fails=1))
        self.assertIn("required", embed(folder, fails=2))

    def generate(self, folder):
        done = subprocess.run([BINARY, "generate", "-m", str(folder), "-p", "w1"], capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        return done.stderr.decode()


class MiniLm(unittest.TestCase):
    def test_it_agrees_with_double_precision_and_with_what_was_published(self):
        config = json.loads((MINILM / "config.json").read_text())
        weights = load_file(MINILM / "model.safetensors")
        answer, got = vectors(MINILM, texts.TEXTS)
        self.assertEqual(answer["dimensions"], 384)
        for text, vector in zip(texts.TEXTS, got):
            ids = ids_of(MINILM, text, 256)
            want = bert_numpy.pooled(bert_numpy.hidden_states(weights, config, ids))
            self.assertGreater(cosine(vector, want), COSINE, text)
            self.assertAlmostEqual(np.linalg.norm(vector), 1, delta=1e-5)
        # Seven published digits.
        self.assertLess(np.abs(got[0][:3] - texts.PUBLISHED).max(), 1e-6)

    def test_like_texts_are_near(self):
        _, got = vectors(MINILM, ["A cat sits on the mat", "A kitten is resting on a rug", "Interest rates rose by a point"])
        self.assertGreater(cosine(got[0], got[1]), cosine(got[0], got[2]) + 0.3)


if __name__ == "__main__":
    unittest.main()
