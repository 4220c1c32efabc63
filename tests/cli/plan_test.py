"""--plan as a user meets it: the same answer with and without, a count that says which, and refusals by name."""

import json
import pathlib
import tempfile
import unittest

from program import RANDOM, run

NATIVE = ("-m", RANDOM, "--quantize-on-load", "q8", "--threads", "1")


class Plan(unittest.TestCase):
    def answer(self, *more, verbose=b""):
        done = run("-v", "generate", *NATIVE, "-p", "hello", "-n", "8", "--ignore-eos", "--json", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(verbose, done.stderr)
        return json.loads(done.stdout)

    def test_the_answer_is_the_same_and_the_count_says_who_served_it(self):
        by_plan = self.answer(verbose=b"plan: generated for the config")
        by_graph = self.answer("--plan", "off", verbose=b"plan: off")
        self.assertEqual(by_plan["tokens"], by_graph["tokens"])
        self.assertEqual(len(by_plan["tokens"]), 8)
        # One step for the prompt, which makes the first token, one for each other token.
        self.assertEqual([by_plan["timings"][key] for key in ("steps", "planned_steps")], [8, 8])
        self.assertEqual([by_graph["timings"][key] for key in ("steps", "planned_steps")], [8, 0])
        self.assertEqual(self.answer("--plan", "required")["timings"]["planned_steps"], 8)

    def test_the_logits_have_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for plan in ("required", "off"):
                for step in ((), ("--stepwise",)):
                    file = f"{folder}/{plan}{len(step)}.safetensors"
                    done = run("eval", "logits", *NATIVE, "--tokens", "1,2,3,4,5,6,7", "-o", file, "--plan", plan, *step)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    files.append(pathlib.Path(file).read_bytes())
            self.assertEqual(len(set(files)), 1)

    def test_prompts_kept_on_disk_are_found_whoever_computed_them(self):
        with tempfile.TemporaryDirectory() as folder:
            first = self.answer("--cache-dir", folder)
            second = self.answer("--cache-dir", folder, "--plan", "off")
        self.assertEqual(first["timings"]["cached_tokens"], 0)
        self.assertEqual(second["timings"]["cached_tokens"], second["prompt_tokens"] - 1)
        self.assertEqual(first["tokens"], second["tokens"])

    def test_where_there_is_none_required_is_an_error_that_says_why(self):
        done = run("generate", "-m", RANDOM, "--tokens", "1", "--math", "reference", "--plan", "required")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"a plan is required", done.stderr)
        self.assertIn(b"reference", done.stderr)
        done = run("bench", "-m", RANDOM, "--plan", "required")  # its matrices are F32
        self.assertEqual(done.returncode, 1)
        for word in (b"a plan is required", b"for the config", b"F32", b"tensor "):
            self.assertIn(word, done.stderr)
        self.assertEqual(run("generate", "-m", RANDOM, "--tokens", "1", "--plan", "maybe").returncode, 2)


if __name__ == "__main__":
    unittest.main()
