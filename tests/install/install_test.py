"""Installs the build into a folder, moves the folder, and proves that the program finds all it needs inside it."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(2))
CMAKE = sys.argv.pop(1)
GLIBC = re.compile(r"^(linux-vdso|/lib64/ld-linux|ld-linux|lib(c|m|dl|rt|pthread|resolv)\.so)")


class Install(unittest.TestCase):
    def test_the_moved_folder_runs_and_links_nothing_outside_but_glibc(self):
        with tempfile.TemporaryDirectory() as scratch:
            first, moved = pathlib.Path(scratch) / "first", pathlib.Path(scratch) / "moved here"
            subprocess.run([CMAKE, "--install", str(BUILD), "--prefix", str(first)], check=True, capture_output=True)
            shutil.move(first, moved)
            program = moved / "bin" / "godwit"
            listing = subprocess.run(["ldd", str(program)], check=True, capture_output=True, text=True).stdout
            outside = []
            for line in listing.splitlines():
                name, _, target = line.strip().partition(" => ")
                if not GLIBC.match(name) and not target.startswith(str(moved.resolve())):
                    outside.append(line.strip())
            self.assertIn("libmlx", listing)
            self.assertEqual(outside, [])
            answer = subprocess.run([str(program), "--version"], env={}, capture_output=True, text=True)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            self.assertIn("godwit", answer.stdout)


if __name__ == "__main__":
    unittest.main()
