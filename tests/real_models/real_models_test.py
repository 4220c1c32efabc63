"""Asks a real model questions whose answers it knows, greedily, through the program itself.

usage: real_models_test.py PROGRAM MODEL (the model was fetched with ./dev setup MODEL; a missing one is a failure)
"""
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

MODEL = sys.argv.pop(2)
PROGRAM = sys.argv.pop(1)

# {model: {arithmetic: [(prompt, a word that a sensible answer holds)]}}. The smallest model is close to a tie on its
# first word for some questions, so the two arithmetics are not asked the same.
QUESTIONS = {
    "smollm2": {
        "reference": [("What is the capital of France?", "Paris"), ("What is the opposite of hot?", "cold")],
        "native": [("What is the chemical formula of water?", "H2O"), ("What is the opposite of hot?", "cold")],
    },
    "gemma3-270m": {
        "native": [("Monday, Tuesday, Wednesday,", "Thursday, Friday"), ("One, two, three, four,", "five, six")],
        "reference": [("One, two, three, four,", "five, six")],
    },
    "qwen2.5-0.5b": {
        "native": [("What is the capital of France?", "Paris"), ("What is 12 + 30?", "42")],
        "reference": [("What is the capital of France?", "Paris")],
    },
}
# This Gemma file is the pretrained model: it continues a text, it was never taught to answer.
FLAGS = {"gemma3-270m": ["--raw"]}


def generate(math, prompt, *flags):
    command = [PROGRAM, "generate", "-m", MODEL, "-p", prompt, "--math", math, "--temp", "0", "-n", "12", "--json",
               *FLAGS.get(MODEL, []), *flags]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ended with {answer.returncode}: {answer.stderr}")
    return json.loads(answer.stdout)


class RealModel(unittest.TestCase):
    def test_questions_are_answered_sensibly(self):
        for math, questions in QUESTIONS[MODEL].items():
            for question, word in questions:
                with self.subTest(math=math, question=question):
                    answer = generate(math, question)
                    print(f"{MODEL}, {math}: {question} -> {answer['text']!r}")
                    self.assertIn(word.lower(), answer["text"].lower())
                    self.assertEqual(answer["math"], math)
                    self.assertEqual(len(answer["tokens"]), answer["timings"]["completion_tokens"])

    def test_the_same_question_gives_the_same_tokens(self):
        question = QUESTIONS[MODEL]["native"][0][0]
        first, second = (generate("native", question, "--seed", seed)["tokens"] for seed in ("7", "8"))
        self.assertEqual(first, second)


class StateBench(unittest.TestCase):
    def bench(self, *flags, **options):
        command = [PROGRAM, "bench", "-m", MODEL, "--state", "--repeats", "1", *flags]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"TMPDIR": folder}, **options)
            self.assertEqual(os.listdir(folder), [], "what it wrote is gone again")
        self.assertEqual(done.returncode, 1, done.stdout)
        return done.stderr

    def test_a_context_that_is_too_short_is_an_error(self):
        self.assertIn("maximum context length is 8000 tokens", self.bench("--ctx", "8000"))

    def test_a_prefix_that_does_not_come_back_is_an_error(self):
        # Room for the index and for no record. Python ignores the signal of a file that grows too large; the child does, too.
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))  # noqa: E731
        error = self.bench(preexec_fn=limit, restore_signals=False)
        self.assertIn("0 tokens came back from disk, not 2048", error)


if MODEL != "smollm2":
    del StateBench  # one model is enough, and this one is small


TEXT = """The river rises in the hills above the town and turns north at the old mill. In spring the meadows on both banks
are under water for weeks; in summer children cross it on stones. Two bridges lead over it: a narrow one of stone, which
carts no longer use, and one of iron for the railway. Below the second the water is deep and slow, and boats lie there."""


def run(*arguments, stdin=""):
    done = subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


class KvPolicies(unittest.TestCase):
    """Over smollm2: the sizes are those of this model."""

    def test_fewer_bits_cost_more_and_hold_less(self):
        # 30 layers, 3 heads of 64 elements for keys and values each. f32; codes and two f16 for 64 elements; turbo: two
        # f16 for 32 elements of a key, one for 32 of a value.
        heads = 30 * 3
        sizes = {"affine:8": heads * 2 * (64 + 4), "affine:4": heads * 2 * (32 + 4), "affine:2": heads * 2 * (16 + 4),
                 "turbo:8:4": heads * (64 + 8 + 32 + 4), "turbo:8:2": heads * (64 + 8 + 16 + 4)}  # fmt: skip
        means = {}
        for kv, size in sizes.items():
            found = json.loads(run("eval", "kl", "-m", MODEL, "--math", "native", "--kv", kv, "--data", "-", "--json", stdin=TEXT))
            print(f"{kv}: mean KL {found['mean_kl']:.6f} over {found['positions']} positions")
            self.assertEqual((found["dense_bytes_per_token"], found["bytes_per_token"]), (heads * 2 * 64 * 4, size), kv)
            means[kv] = found["mean_kl"]
        self.assertLess(0, means["affine:8"])
        self.assertLess(means["affine:8"] * 2, means["affine:4"])
        self.assertLess(means["affine:4"] * 2, means["affine:2"])
        self.assertLess(means["turbo:8:4"] * 2, means["turbo:8:2"])

    def test_native_logits_do_not_depend_on_how_tokens_reach_the_start(self):
        tokens = ",".join(str(7 + 611 * i % 40000) for i in range(80))  # past a block of 64
        for kv in ("affine:4", "turbo:8:3"):
            for start in ("0", "5", "70"):
                with tempfile.TemporaryDirectory() as folder:
                    files = [pathlib.Path(folder, name) for name in ("whole", "stepwise")]
                    for file, flags in zip(files, ([], ["--stepwise"])):
                        run("eval", "logits", "-m", MODEL, "--math", "native", "--kv", kv, "--kv-start", start, "--tokens", tokens,
                            "-o", str(file), *flags)  # fmt: skip
                    self.assertEqual(files[0].read_bytes(), files[1].read_bytes(), (kv, start))


if MODEL != "smollm2":
    del KvPolicies


if __name__ == "__main__":
    unittest.main()
