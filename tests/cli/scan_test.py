"""godwit scan and ls -v: how a checkpoint would be opened, or why not, from its description alone."""

import hashlib
import json
import pathlib
import shutil
import tempfile
import unittest

from program import MODELS, RANDOM, run

CONFIGS = pathlib.Path(__file__).resolve().parents[1] / "configs"
# Keys that no graph reads (docs/profiles.md), as far as the configs here have them.
NOT_COUNTED = {"architectures", "torch_dtype", "dtype", "eos_token_id", "bos_token_id", "pad_token_id"}


def number(value):
    """The canonical spelling of a number, by Python's own shortest digits."""
    if value == int(value):
        return str(int(value))
    return next(text for digits in range(17) if float(text := f"{value:.{digits}e}") == value)


def canonical(value):
    if isinstance(value, dict):
        members = sorted((key.encode(), key) for key, item in value.items() if item is not None)
        return "{" + ",".join(json.dumps(key, ensure_ascii=False) + ":" + canonical(value[key]) for _, key in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number(value)
    return json.dumps(value, ensure_ascii=False)


def fingerprint(config, family):
    counted = {key: value for key, value in config.items() if key not in NOT_COUNTED}
    text = canonical({"config": counted, "model_type": family, "source": "json"})
    return hashlib.sha256(b"godwit-config-1\n" + text.encode()).hexdigest()


class Scan(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def place(self, name, config=None):
        folder = self.root / name
        folder.mkdir(parents=True)
        if config is None:
            shutil.copy(CONFIGS / f"{pathlib.Path(name).name}.json", folder / "config.json")
        else:
            (folder / "config.json").write_text(json.dumps(config))
        return folder

    def scan(self):
        done = run("scan", str(self.root), "--json")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return {model["id"]: model for model in json.loads(done.stdout)["models"]}

    def test_a_config_alone_shows_its_profile(self):
        self.place("llama-3.2-1b")
        model = self.scan()["llama-3.2-1b"]
        profile = model["profile"]
        self.assertIsNone(model["refused"])
        self.assertEqual(profile["id"], "llama")
        self.assertEqual([profile[key] for key in ("loader", "graph", "loop", "specialization")],
                         ["safetensors", "llama", "autoregressive", "generic"])  # fmt: skip
        self.assertEqual(profile["capabilities"], ["autoregressive", "llama-graph", "safetensors"])
        self.assertEqual(profile["reference"], {"tier": "L1", "oracle": "mlx-lm", "claim": "bit-exact", "figures": None})
        self.assertEqual([profile["native"][key] for key in ("tier", "oracle", "claim", "specialization")],
                         ["L3", "none", "measured", "generated"])  # fmt: skip
        self.assertEqual(model["problems"], ["holds no .safetensors file", "has no tokenizer"])

    def test_the_fingerprint_is_what_its_page_says(self):
        for name, family in [("llama-3.2-1b", "llama"), ("smollm2-135m", "llama"), ("qwen3-8b", "qwen3")]:
            config = json.loads((CONFIGS / f"{name}.json").read_text())
            self.place(name)
            self.assertEqual(self.scan()[name]["profile"]["config_fingerprint"], fingerprint(config, family), name)

    def test_what_would_be_refused_says_why(self):
        self.place("deep/down/whisper-base")
        self.place("odd", {"model_type": "hyena"})
        llama = json.loads((CONFIGS / "llama-3.2-1b.json").read_text())
        self.place("spiral", llama | {"rope_scaling": {"rope_type": "spiral", "factor": 2.0}})
        self.place("headless", {key: value for key, value in llama.items() if key != "num_attention_heads"})
        models = self.scan()
        for name, word in [("deep/down/whisper-base", "godwit transcribe"), ("odd", "hyena"), ("spiral", "spiral"),
                           ("headless", "num_attention_heads")]:  # fmt: skip
            self.assertIsNone(models[name]["profile"], name)
            self.assertIn(word, models[name]["refused"], name)
        text = run("scan", str(self.root)).stdout.decode()
        self.assertIn("refused: odd: ", text)

    def test_the_config_of_a_part_is_no_model_and_a_broken_one_is(self):
        folder = self.place("llama-3.2-1b")
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
        broken = self.place("broken", {})
        (broken / "config.json").write_text('{"model_type": ')
        models = self.scan()
        self.assertEqual(sorted(models), ["broken", "llama-3.2-1b"])
        self.assertIn("broken/config.json", models["broken"]["refused"])
        self.assertNotIn("no graph", models["broken"]["refused"])

    def test_experts_that_mlx_lm_cannot_run_are_promised_less(self):
        config = json.loads((CONFIGS / "qwen3-30b-a3b.json").read_text())
        for dtype in ("bfloat16", "float32"):
            self.place(dtype, config | {"torch_dtype": dtype})
        models = self.scan()
        narrow, wide = (models[dtype]["profile"] for dtype in ("bfloat16", "float32"))
        self.assertEqual([narrow["id"], wide["id"]], ["qwen3_moe-dense-experts", "qwen3_moe"])
        self.assertEqual([narrow["reference"][key] for key in ("tier", "oracle", "claim")], ["L3", "mlx-lm", "bounded"])
        self.assertIn("half a unit in the last place", narrow["reference"]["figures"])
        self.assertEqual(wide["reference"]["tier"], "L1")
        rows = run("scan", str(self.root)).stdout.decode().splitlines()
        self.assertIn("L3, mlx-lm, bounded", next(row for row in rows if row.startswith("bfloat16")))

    def test_what_python_writes_is_read_and_what_is_no_config_is_not(self):
        llama = json.loads((CONFIGS / "llama-3.2-1b.json").read_text())
        (self.place("python", {}) / "config.json").write_text(json.dumps(llama | {"limits": [0.0, float("inf"), float("nan")]}))
        (self.place("large", {}) / "config.json").write_text(json.dumps(llama | {"junk": "x" * (33 << 20)}))
        self.place("forged", llama | {"model_type": "\x1b[31mllama\nrefused: nothing"})
        models = self.scan()
        self.assertEqual(models["python"]["profile"]["id"], "llama")
        self.assertIn("at most 33554432", models["large"]["refused"])
        lines = run("scan", str(self.root)).stdout.decode()
        self.assertNotIn("\x1b", lines)
        self.assertEqual([line for line in lines.splitlines() if line.startswith("refused: nothing")], [])

    def test_shards_without_an_index_are_counted(self):
        folder = self.place("llama-3.2-1b")
        (folder / "model-00001-of-00002.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
        self.assertIn("1 of 2 shards are there, and no index", self.scan()["llama-3.2-1b"]["problems"])

    def test_a_config_that_the_oracle_reads_otherwise_is_promised_less(self):
        llama = json.loads((CONFIGS / "llama-3.2-1b.json").read_text())
        llama.pop("rope_theta", None), llama.pop("rope_scaling", None)
        self.place("newer", llama | {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}})
        promise = self.scan()["newer"]["profile"]["reference"]
        self.assertEqual((promise["tier"], promise["oracle"]), ("L3", "none"))
        self.assertIn("rope_parameters", promise["figures"])

    def test_weights_are_not_read(self):
        folder = self.place("llama-3.2-1b")
        (folder / "model.safetensors").write_bytes(b"spoiled")
        model = self.scan()["llama-3.2-1b"]
        self.assertEqual(model["profile"]["id"], "llama")
        self.assertEqual(len(model["problems"]), 2)  # the spoiled file, and no tokenizer

    def test_people_get_a_table(self):
        self.place("qwen3-8b")
        done = run("scan", str(self.root))
        self.assertEqual(done.returncode, 0)
        titles, row = done.stdout.decode().splitlines()[:2]
        self.assertEqual(titles.split(), ["ID", "ARCHITECTURE", "PROFILE", "REFERENCE", "NATIVE", "CONFIG"])
        self.assertRegex(row, r"^qwen3-8b +qwen3 +qwen3 +L1, mlx-lm, bit-exact +L3, none, measured +[0-9a-f]{16}$")

    def test_an_empty_folder_and_no_folder(self):
        self.assertIn("no checkpoint", run("scan", str(self.root)).stdout.decode())
        missing = run("scan", str(self.root / "missing"))
        self.assertEqual(missing.returncode, 1)
        self.assertIn("missing", missing.stderr.decode())

    def test_opening_says_the_same(self):
        profile = json.loads(run("scan", str(MODELS), "--json").stdout)["models"][-1]["profile"]
        notes = run("-v", "generate", "-m", RANDOM, "--tokens", "1,2", "-n", "1", "--math", "reference").stderr.decode()
        self.assertIn(f"profile: {profile['id']} (L1, mlx-lm, bit-exact), config {profile['config_fingerprint'][:16]}", notes)


class Ls(unittest.TestCase):
    def test_verbose_and_json_show_the_profile(self):
        with tempfile.TemporaryDirectory() as cache:
            models = pathlib.Path(cache) / "godwit" / "models"
            models.mkdir(parents=True)
            shutil.copytree(RANDOM, models / "random")
            here = {"XDG_CACHE_HOME": cache}
            plain, verbose = (run("ls", *flags, environment=here).stdout.decode() for flags in ([], ["-v"]))
            self.assertNotIn("PROFILE", plain)
            self.assertIn("PROFILE", verbose)
            self.assertIn("L1, mlx-lm, bit-exact", verbose)
            listed = json.loads(run("ls", "--json", environment=here).stdout)["models"][0]
            self.assertEqual(listed["profile"]["id"], "llama")
            self.assertEqual(len(listed["profile"]["config_fingerprint"]), 64)


if __name__ == "__main__":
    unittest.main()
