"""The prompt cache as a user meets it: --cache-dir over two runs of the program, chat, and what the flags refuse."""

import json
import pathlib
import stat
import tempfile
import unittest

from program import CHAIN, RANDOM, run

PROMPT = "The quick brown fox jumps over the lazy dog."


def answer_in(folder, *more, model=RANDOM):
    done = run("generate", "-m", model, "-p", PROMPT, "-n", "8", "--json", "--cache-dir", str(folder), *more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Disk(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.cache = pathlib.Path(self.folder.name) / "cache"

    def test_the_second_run_finds_what_the_first_computed(self):
        plain = json.loads(run("generate", "-m", RANDOM, "-p", PROMPT, "-n", "8", "--json").stdout)
        first, second = answer_in(self.cache), answer_in(self.cache)
        self.assertEqual((plain["timings"]["cached_tokens"], first["timings"]["cached_tokens"]), (0, 0))
        self.assertEqual(second["timings"]["cached_tokens"], second["prompt_tokens"] - 1)
        self.assertEqual([first["tokens"], second["tokens"]], [plain["tokens"]] * 2)

    def test_another_policy_or_model_finds_nothing(self):
        answer_in(self.cache)
        self.assertEqual(answer_in(self.cache, "--kv", "affine:4:32")["timings"]["cached_tokens"], 0)
        self.assertEqual(answer_in(self.cache, model=CHAIN)["timings"]["cached_tokens"], 0)

    def test_nobody_else_may_read_it(self):
        answer_in(self.cache)
        modes = {stat.S_IMODE(path.stat().st_mode) for path in [self.cache, *self.cache.rglob("*")]}
        self.assertEqual({mode & 0o077 for mode in modes}, {0})

    def test_verbose_says_what_is_kept_and_found(self):
        answer_in(self.cache)
        done = run("-v", "generate", "-m", RANDOM, "-p", PROMPT, "-n", "1", "--cache-dir", str(self.cache))
        self.assertIn(f"{self.cache} on disk", done.stderr.decode())
        self.assertRegex(done.stderr.decode(), r"prompt of \d+ tokens, [1-9]\d* of them found in the cache")

    def test_a_folder_that_cannot_be_made_is_an_error(self):
        done = run("generate", "-m", RANDOM, "-p", "x", "--cache-dir", "/proc/none/here")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"/proc/none/here", done.stderr)


class Chat(unittest.TestCase):
    def test_turns_find_each_other_when_asked_for(self):
        def found(*flags):
            done = run("-v", "chat", "-m", CHAIN, *flags, stdin=b"hi\nhi\n")
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout, done.stderr.decode().count("0 of them found in the cache")

        plain, misses = found()
        self.assertEqual(misses, 2, "reference arithmetic keeps nothing unless asked")
        kept, _ = found("--prompt-cache", "16M")
        self.assertEqual(kept, plain)


class Refusals(unittest.TestCase):
    def test_flags_that_make_no_sense(self):
        for flags, word in (
            (("serve", "--prompt-cache", "much"), "--prompt-cache"),
            (("serve", "--prompt-cache", "off", "--cache-dir", "x"), "--cache-dir"),
            (("chat", "--cache-disk", "1G"), "--cache-dir"),
            (("serve", "--prompt-cache", ""), "--prompt-cache is empty"),
            (("serve", "--cache-dir", ""), "--cache-dir is empty"),
            (("generate", "-p", "x", "--cache-dir", ""), "--cache-dir is empty"),
            (("generate", "-p", "x", "--cache-dir", "x", "--cache-disk", ""), "--cache-disk is empty"),
            (("generate", "-p", "x", "--cache-dir", "x", "--cache-disk", "0"), "--cache-disk"),
        ):
            done = run(*flags, "-m", RANDOM)
            self.assertEqual(done.returncode, 2, flags)
            self.assertIn(word, done.stderr.decode())
        self.assertFalse(pathlib.Path("x").exists())


if __name__ == "__main__":
    unittest.main()
