"""--packed-cache as a user meets it: the same answer with, without and after damage, and one file that is written once."""

import json
import pathlib
import tempfile
import unittest

from program import RANDOM, run

WRITTEN = b"packed weights: written"


class Packed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "packed"

    def answer(self, *more, to="q8", environment=None):
        done = run("-v", "generate", "-m", RANDOM, "-p", "hello", "-n", "8", "--quantize-on-load", to, "--json", *more,
                   environment=environment)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["tokens"], done.stderr

    def files(self):
        return sorted(self.folder.glob("*.packed"))

    def test_the_second_start_finds_what_the_first_packed_and_answers_the_same(self):
        plain, said = self.answer("--packed-cache", "off")
        self.assertNotIn(WRITTEN, said)
        first, said = self.answer("--packed-cache", str(self.folder))
        self.assertIn(WRITTEN, said)
        (file,) = self.files()
        before = file.stat().st_ino
        second, said = self.answer("--packed-cache", str(self.folder))
        self.assertNotIn(WRITTEN, said)
        self.assertEqual(self.files()[0].stat().st_ino, before)
        self.assertEqual([first, second], [plain, plain])

    def test_what_is_quantized_otherwise_is_another_file(self):
        self.answer("--packed-cache", str(self.folder))
        self.answer("--packed-cache", str(self.folder), to="q4")
        self.assertEqual(len(self.files()), 2)

    def test_a_damaged_file_is_packed_again(self):
        plain, _ = self.answer("--packed-cache", str(self.folder))
        (file,) = self.files()
        file.write_bytes(file.read_bytes()[:40])
        again, said = self.answer("--packed-cache", str(self.folder))
        self.assertIn(b"packed again", said)
        self.assertIn(WRITTEN, said)
        self.assertEqual(again, plain)

    def test_the_environment_is_the_default_of_the_flag(self):
        where = {"GODWIT_PACKED_CACHE": str(self.folder)}
        self.answer(environment=where)
        self.assertEqual(len(self.files()), 1)
        _, said = self.answer("--packed-cache", "off", environment=where)
        self.assertNotIn(WRITTEN, said)

    def test_an_empty_folder_name_is_refused(self):
        done = run("generate", "-m", RANDOM, "-p", "x", "--packed-cache", "")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"--packed-cache", done.stderr)


if __name__ == "__main__":
    unittest.main()
