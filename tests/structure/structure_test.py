"""The rules of the tree: levels, sizes, weak symbols. Each checker is first shown a tree that breaks its rule."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import check_layers  # noqa: E402
import check_sizes  # noqa: E402
import check_weak_symbols  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1))
COMPILER = sys.argv.pop(1)


def write(folder, name, text):
    path = pathlib.Path(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


class Layers(unittest.TestCase):
    def test_an_upward_and_a_sideways_include_are_found(self):
        with tempfile.TemporaryDirectory() as tree:
            write(tree, "cache/a.cpp", '#include "nn/linear.h"\n#include "base/error.h"\n')
            write(tree, "text/b.h", '#include "checkpoint/config.h"\n')
            write(tree, "kernels/c.cpp", "#include <mlx/array.h>\n")
            write(tree, "extra/d.cpp", "")
            found = check_layers.problems_of_tree(pathlib.Path(tree))
            self.assertEqual(len(found), 4, found)

    def test_this_tree_keeps_its_levels(self):
        self.assertEqual(check_layers.problems_of_tree(ROOT / "src"), [])


class Sizes(unittest.TestCase):
    def test_a_long_function_and_a_long_file_are_found(self):
        body = "  x();\n"
        with tempfile.TemporaryDirectory() as tree:
            long_function = write(tree, "a.cpp", "int f(int a,\n      int b) {\n" + body * 80 + "}\n")
            self.assertEqual(len(check_sizes.problems_of_file(long_function)), 1)
            fine = write(tree, "b.cpp", "namespace x {\nint f() {\n" + body * 78 + "}\n" + "int g() {\n" + body * 70 + "}\n}\n")
            self.assertEqual(check_sizes.problems_of_file(fine), [])
            self.assertEqual(len(check_sizes.problems_of_file(write(tree, "c.h", "\n" * 601))), 1)

    def test_this_tree_keeps_its_sizes(self):
        files = list(check_sizes.source_files([ROOT / "src", ROOT / "tests", ROOT / "scripts"]))
        self.assertGreater(len(files), 20)
        self.assertEqual([p for path in files for p in check_sizes.problems_of_file(path)], [])


class WeakSymbols(unittest.TestCase):
    def test_a_std_container_in_a_level_file_is_found(self):
        with tempfile.TemporaryDirectory() as tree:
            source = write(tree, "k.cpp", "#include <vector>\nint f(std::vector<int>& v) { v.push_back(1); return v.at(0); }\n")
            target = pathlib.Path(tree) / "k_avx512.cpp.o"
            subprocess.run([COMPILER, "-O0", "-c", str(source), "-o", str(target)], check=True)
            self.assertTrue(check_weak_symbols.problems_of_tree(pathlib.Path(tree)))

    def test_this_build_has_none(self):
        self.assertTrue(list(BUILD.rglob("*.o")), f"no objects under {BUILD}")
        self.assertEqual(check_weak_symbols.problems_of_tree(BUILD), [])


if __name__ == "__main__":
    unittest.main()
