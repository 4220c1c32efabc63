"""godwit eval fidelity, kl and perplexity over tiny models, against NumPy on the logits that eval logits writes."""

import json
import os
import tempfile
import unittest

import numpy as np
from program import CHAIN, RANDOM, run
from safetensors.numpy import load_file

TOKENS = [104, 105, 10, 7, 200, 31, 64, 99, 12, 180]
IDS = ",".join(map(str, TOKENS))
# Layers, planes and heads of the tiny model: 2 layers, K and V, one head of 32 elements.
PLANES = 2 * 2 * 1


def report(*arguments, model=RANDOM, stdin=b""):
    done = run("eval", *arguments[:1], "-m", model, "--json", *arguments[1:], stdin=stdin)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def log_probabilities(*arguments):
    """Log-softmax in double precision of the logits, [tokens, vocabulary]."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out.safetensors")
        done = run("eval", "logits", "-m", RANDOM, "-o", path, "--tokens", IDS, *arguments)
        assert done.returncode == 0, done.stderr
        logits = load_file(path)["logits"].astype(np.float64)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


class Kl(unittest.TestCase):
    def test_token_by_token_it_is_the_divergence_of_the_stepwise_logits(self):
        dense = log_probabilities("--stepwise")
        for kv in [("dense:bf16",), ("affine:8:32",), ("affine:4:32",), ("affine:2:32",), ("affine:4:32", "--kv-start", "6")]:
            found = report("kl", "--tokens", IDS, "--prefill", "0", "--kv", *kv)
            other = log_probabilities("--stepwise", "--kv", *kv)
            each = (np.exp(dense) * (dense - other)).sum(axis=-1)
            # Sums of 258 doubles of size 1 on both sides: 258 * 2^-53.
            self.assertAlmostEqual(found["mean_kl"], each.mean(), delta=1e-13, msg=kv)
            self.assertAlmostEqual(found["max_kl"], each.max(), delta=1e-13, msg=kv)
            self.assertEqual(found["top1_agreement"], np.mean(dense.argmax(axis=-1) == other.argmax(axis=-1)), kv)
            self.assertEqual((found["positions"], found["kv_start"]), (len(TOKENS), int(kv[-1]) if len(kv) > 1 else 0))
            self.assertGreater(found["mean_kl"], 0, kv)

    def test_fewer_bits_are_further_away(self):
        divergences = [report("kl", "--tokens", IDS, "--kv", f"affine:{bits}:32")["mean_kl"] for bits in (8, 4, 2)]
        self.assertEqual(divergences, sorted(divergences))
        self.assertLess(divergences[0] * 10, divergences[2])

    def test_dense_against_itself_is_exactly_zero(self):
        found = report("kl", "--tokens", IDS)
        self.assertEqual((found["mean_kl"], found["max_kl"], found["top1_agreement"], found["bytes_ratio"]), (0, 0, 1, 1))

    def test_the_report_names_the_run_and_both_sizes(self):
        found = report("kl", "--tokens", IDS, "--window", "4", "--windows", "2", "--kv", "affine:4:32")
        keys = ["model", "math", "activations", "kv", "kv_start", "window", "windows", "prefill", "positions", "mean_kl", "max_kl",
                "top1_agreement", "bytes_per_token", "dense_bytes_per_token", "bytes_ratio"]  # fmt: skip
        self.assertEqual(list(found), keys)
        self.assertEqual((found["math"], found["kv"], found["window"], found["windows"]), ("reference", "affine:4:32", 4, 2))
        self.assertEqual((found["prefill"], found["positions"]), (2, 2 * 2))
        # f32 elements; 4 bits each and one f32 scale and bias for the 32 of a head.
        self.assertEqual((found["dense_bytes_per_token"], found["bytes_per_token"]), (PLANES * 32 * 4, PLANES * (16 + 8)))
        self.assertAlmostEqual(found["bytes_ratio"], 128 / 24)

    def test_each_window_is_a_text_of_its_own_and_a_rest_is_left_out(self):
        first = report("kl", "--tokens", IDS, "--window", "4", "--windows", "1", "--kv", "affine:2:32")
        second = report("kl", "--tokens", ",".join(map(str, TOKENS[4:8])), "--kv", "affine:2:32")
        both = report("kl", "--tokens", IDS, "--window", "4", "--kv", "affine:2:32")
        self.assertEqual((first["windows"], second["windows"], both["windows"]), (1, 1, 2))
        self.assertAlmostEqual(both["mean_kl"], (first["mean_kl"] + second["mean_kl"]) / 2, delta=1e-15)

    def test_a_prefill_reads_its_keys_before_they_are_encoded(self):
        # What is compared behind the prefill differs, since its tokens saw each other densely.
        apart, together = (report("kl", "--tokens", IDS, "--prefill", n, "--kv", "affine:2:32") for n in ("0", "9"))
        self.assertEqual(together["positions"], 1)
        self.assertNotEqual(apart["max_kl"], together["max_kl"])

    def test_text_comes_from_a_file_or_standard_input(self):
        text = "grüße, world".encode()
        with tempfile.NamedTemporaryFile() as file:
            file.write(text)
            file.flush()
            from_file = report("kl", "--data", file.name, "--kv", "affine:4:32")
        self.assertEqual(from_file["window"], len(text))  # one token for each byte
        self.assertEqual(from_file, report("kl", "--data", "-", "--kv", "affine:4:32", stdin=text))

    def test_people_read_lines(self):
        done = run("eval", "kl", "-m", RANDOM, "--tokens", IDS, "--kv", "affine:4:32", "--kv-start", "7")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        out = done.stdout.decode()
        for part in ("affine:4:32 from token 7 against dense", "reference", "positions        5\n", "mean KL", "nats", "5.33 times"):
            self.assertIn(part, out)


class Fidelity(unittest.TestCase):
    QUANTIZED = ("--math", "native", "--quantize-on-load", "q8")

    def test_it_is_the_divergence_and_the_expectation_of_the_logits_of_both_runs(self):
        wanted, got = (log_probabilities(*flags)[:-1] for flags in ((), self.QUANTIZED))
        each = (np.exp(wanted) * (wanted - got)).sum(axis=-1)
        perplexity = {name: np.exp(-rows[np.arange(len(TOKENS) - 1), TOKENS[1:]].mean()) for name, rows in (("wanted", wanted), ("got", got))}
        found = report("fidelity", "--tokens", IDS, "--against", "reference", *self.QUANTIZED)
        # Sums of 258 doubles of size 1 on both sides: 258 * 2^-53.
        self.assertAlmostEqual(found["mean_kl"], each.mean(), delta=1e-13)
        self.assertAlmostEqual(found["max_kl"], each.max(), delta=1e-13)
        self.assertGreater(found["mean_kl"], 0)
        self.assertEqual(found["top1_agreement"], np.mean(wanted.argmax(axis=-1) == got.argmax(axis=-1)))
        self.assertAlmostEqual(found["perplexity"] / perplexity["got"], 1, delta=1e-12)
        self.assertAlmostEqual(found["perplexity_change"], perplexity["got"] / perplexity["wanted"] - 1, delta=1e-12)
        self.assertEqual((found["math"], found["activations"], found["against"]), ("native", "int8", "reference"))
        self.assertEqual((found["positions"], found["windows"]), (9, 1))

    def test_a_run_against_itself_is_exactly_the_same(self):
        found = report("fidelity", "--tokens", IDS, "--against", "reference", "--window", "5")
        self.assertEqual((found["mean_kl"], found["top1_agreement"], found["perplexity_change"]), (0, 1, 0))
        self.assertEqual((found["positions"], found["windows"]), (2 * 4, 2))

    def test_the_baseline_has_the_weights_of_the_file(self):
        done = run("eval", "fidelity", "-m", RANDOM, "--tokens", IDS, *self.QUANTIZED)
        self.assertEqual(done.returncode, 1)
        self.assertIn("F32", done.stderr.decode())

    def test_people_read_lines(self):
        done = run("eval", "fidelity", "-m", RANDOM, "--tokens", IDS, "--against", "reference", *self.QUANTIZED)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        for part in ("native, kv dense against reference (1 windows of 10 tokens)", "positions        9\n", "mean KL", "perplexity"):
            self.assertIn(part, done.stdout.decode())


class Perplexity(unittest.TestCase):
    def test_it_is_that_of_the_logits(self):
        logs = log_probabilities()
        surprise = -logs[np.arange(len(TOKENS) - 1), TOKENS[1:]]
        found = report("perplexity", "--tokens", IDS)
        self.assertAlmostEqual(found["perplexity"] / np.exp(surprise.mean()), 1, delta=1e-12)
        error = np.exp(surprise.mean()) * surprise.std(ddof=1) / len(surprise) ** 0.5
        self.assertAlmostEqual(found["standard_error"] / error, 1, delta=1e-9)
        self.assertEqual((found["positions"], found["prefill"], found["kv"]), (9, 10, "dense"))

    def test_token_by_token_it_measures_the_policy(self):
        kv = ("--kv", "affine:3:32")
        logs = log_probabilities("--stepwise", *kv)
        surprise = -logs[np.arange(len(TOKENS) - 1), TOKENS[1:]]
        found = report("perplexity", "--tokens", IDS, "--prefill", "0", *kv)
        self.assertAlmostEqual(found["perplexity"] / np.exp(surprise.mean()), 1, delta=1e-12)

    def test_a_model_that_knows_the_text_is_hardly_surprised(self):
        known, scrambled = (report("perplexity", "--data", "-", model=CHAIN, stdin=text.encode())["perplexity"]
                            for text in ("a😸b作c", "c作b😸a"))  # fmt: skip
        self.assertLess(known, 1.5)
        self.assertGreater(scrambled, 100)

    def test_people_read_lines(self):
        done = run("eval", "perplexity", "-m", RANDOM, "--tokens", IDS)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertRegex(done.stdout.decode(), r"perplexity  [0-9.e+]+ ± [0-9.e+]+\n$")


class Failures(unittest.TestCase):
    def refused(self, *arguments, code, says):
        for verb in ("kl", "perplexity"):
            done = run("eval", verb, "-m", RANDOM, *arguments)
            self.assertEqual((done.returncode, done.stdout), (code, b""), (verb, done.stderr))
            for word in [says] if isinstance(says, str) else says:
                self.assertIn(word, done.stderr.decode(), verb)

    def test_wrong_usage(self):
        self.refused(code=2, says="--data FILE")
        self.refused("--tokens", "1,x", code=2, says='"x" is not a token id')
        self.refused("--tokens", "1", code=2, says="at least 2")
        self.refused("--tokens", IDS, "--data", "x", code=2, says="excludes")
        self.refused("--tokens", IDS, "--window", "1", code=2, says="at least 2")
        self.refused("--tokens", IDS, "--windows", "0", code=2, says="at least 1")
        self.refused("--tokens", IDS, "--prefill", "11", code=2, says="--prefill 11")
        self.refused("--tokens", IDS, "--window", "4", "--prefill", "5", code=2, says="--prefill 5")
        self.refused("--tokens", "1,2,258", code=2, says="vocabulary")
        self.refused("--tokens", IDS, "--kv-start", "3", code=2, says="--kv-start 3 needs a quantized --kv")

    def test_a_policy_that_would_encode_nothing_is_not_measured(self):
        self.refused("--tokens", IDS, "--kv", "affine:4:32", "--kv-start", "10", code=2, says="--kv-start 10")
        done = run("eval", "perplexity", "-m", RANDOM, "--tokens", IDS, "--kv", "affine:4:32")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--prefill", done.stderr.decode())
        done = run("eval", "kl", "-m", RANDOM, "--tokens", IDS, "--prefill", "10")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--prefill 10", done.stderr.decode())

    def test_policies_that_the_model_cannot_serve_name_the_layer(self):
        self.refused("--tokens", IDS, "--kv", "affine:4:64", code=1, says=["layer 0", "affine:4:64", "32"])
        self.refused("--tokens", IDS, "--kv", "turbo:8:3", code=1, says=["layer 0", "turbo:8:3"])
        self.refused("--tokens", IDS, "--kv", "config", code=1, says="kv_config.json")
        self.refused("--tokens", IDS, "--kv", "affine:7", code=2, says="affine:7")

    def test_files_and_contexts(self):
        self.refused("--data", "/nowhere/text", code=1, says="/nowhere/text")
        self.refused("--tokens", IDS, "--ctx", "4", "--window", "5", code=1, says="maximum context length is 4")
        self.assertEqual(report("kl", "--tokens", IDS, "--ctx", "4")["window"], 4)


if __name__ == "__main__":
    unittest.main()
