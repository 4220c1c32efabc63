"""godwit generate and godwit eval logits over tiny models."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

import numpy as np
from program import ANSWER, BINARY, CHAIN, ENVIRONMENT, RANDOM, run, start
from safetensors.numpy import load_file

GENERATE = ("generate", "-m", CHAIN)
LONG = ("generate", "-m", RANDOM, "-p", "x", "-n", "-1", "--ignore-eos", "--temp", "1", "--seed", "3")


def answer_of(*arguments, model=CHAIN, stdin=b""):
    done = run("generate", "-m", model, "--json", *arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Text(unittest.TestCase):
    def test_only_the_answer_goes_to_stdout_and_nothing_to_stderr(self):
        done = run(*GENERATE, "-p", "hello")
        self.assertEqual((done.returncode, done.stdout.decode(), done.stderr), (0, ANSWER + "\n", b""))

    def test_the_prompt_comes_from_a_flag_standard_input_or_a_file(self):
        direct = answer_of("-p", "grüße")
        self.assertEqual(answer_of("-p", "-", stdin="grüße".encode())["prompt_tokens"], direct["prompt_tokens"])
        with tempfile.NamedTemporaryFile() as file:
            pathlib.Path(file.name).write_text("grüße")
            self.assertEqual(answer_of("--file", file.name)["prompt_tokens"], direct["prompt_tokens"])

    def test_one_last_newline_of_a_file_or_of_standard_input_is_no_part_of_the_prompt(self):
        wanted = answer_of("-p", "a\n")["prompt_tokens"]
        self.assertEqual(answer_of("-p", "-", stdin=b"a\n\n")["prompt_tokens"], wanted)
        self.assertEqual(answer_of("-p", "-", stdin=b"a\r\n")["prompt_tokens"], wanted - 1)

    def test_a_prompt_may_begin_with_a_dash(self):
        self.assertEqual(answer_of("-p", "--help")["text"], ANSWER)

    def test_json_has_the_documented_shape(self):
        answer = answer_of("-p", "hi")
        self.assertEqual(list(answer), ["text", "tokens", "prompt_tokens", "finish_reason", "timings", "seed", "math", "activations"])
        self.assertEqual(answer["math"], "reference")
        self.assertEqual(answer["text"], ANSWER)
        self.assertEqual(answer["tokens"], list(ANSWER.encode()))
        # <|im_start|> user newline hi <|im_end|> newline <|im_start|> assistant newline
        self.assertEqual(answer["prompt_tokens"], 1 + 5 + 2 + 1 + 1 + 1 + 10)
        self.assertEqual(answer["finish_reason"], "stop")
        timings = answer["timings"]
        self.assertEqual((timings["prompt_tokens"], timings["completion_tokens"]), (21, len(ANSWER.encode())))
        for key in ("prompt_seconds", "completion_seconds", "prompt_tokens_per_second", "completion_tokens_per_second"):
            self.assertGreater(timings[key], 0, key)

    def test_limits_are_exact(self):
        for limit in (0, 1, 2, 5):
            answer = answer_of("-p", "hi", "-n", str(limit))
            self.assertEqual(answer["tokens"], list(ANSWER.encode()[:limit]))
            self.assertEqual(answer["finish_reason"], "length")
        self.assertEqual(answer_of("-p", "hi", "-n", "2")["text"], "a\ufffd")  # cut inside a character
        self.assertEqual(len(answer_of("-p", "hi", "--ctx", "24", "-n", "-1")["tokens"]), 3)

    def test_stop_strings_end_the_text_before_them(self):
        for stops, text, match in [(["b"], "a😸", "b"), (["作c"], "a😸b", "作c"), (["zz", "😸b"], "a", "😸b"), (["c", "b作"], "a😸", "b作")]:
            answer = answer_of("-p", "hi", *(word for stop in stops for word in ("--stop", stop)))
            self.assertEqual((answer["text"], answer["finish_reason"], answer["stop"]), (text, "stop", match))
        self.assertEqual(answer_of("-p", "hi", "--stop", "cx")["text"], ANSWER)  # held back, then shown

    def test_raw_skips_the_template_and_system_needs_it(self):
        self.assertEqual(answer_of("-p", "\n", "--raw")["prompt_tokens"], 1)
        self.assertEqual(answer_of("-p", "hi", "--system", "s")["prompt_tokens"], 21 + 11)
        done = run(*GENERATE, "-p", "x", "--raw", "--system", "s")
        self.assertEqual(done.returncode, 2)

    def test_a_template_file_replaces_the_models_own(self):
        with tempfile.NamedTemporaryFile(suffix=".jinja") as file:
            pathlib.Path(file.name).write_text("{{ messages[0].content }}b")
            self.assertEqual(answer_of("-p", "x", "--chat-template", file.name)["text"], "作c")
            pathlib.Path(file.name).write_text("{{ broken")
            done = run(*GENERATE, "-p", "x", "--chat-template", file.name)
            self.assertEqual(done.returncode, 1)
            self.assertIn(file.name, done.stderr.decode())

    def test_sampling_repeats_with_its_seed(self):
        sample = lambda *seed: answer_of("-p", "x", "-n", "12", "--ignore-eos", "--temp", "1", *seed, model=RANDOM)
        first, other = sample("--seed", "7"), sample("--seed", "0")
        self.assertEqual(first["tokens"], sample("--seed", "7")["tokens"])
        self.assertNotEqual(first["tokens"], other["tokens"])
        drawn = sample()
        self.assertNotEqual(drawn["tokens"], sample()["tokens"])
        self.assertEqual(drawn["tokens"], sample("--seed", str(drawn["seed"]))["tokens"])

    def test_logprobs_cover_every_token_with_its_bytes(self):
        answer = answer_of("-p", "hi", "--logprobs", "2")
        self.assertEqual(bytes(byte for entry in answer["logprobs"] for byte in entry["bytes"]), ANSWER.encode())
        for token, entry in zip(answer["tokens"], answer["logprobs"], strict=True):
            self.assertEqual(entry["id"], token)
            self.assertLessEqual(entry["logprob"], 0)
            self.assertEqual(len(entry["top_logprobs"]), 2)
            self.assertEqual(entry["top_logprobs"][0]["id"], token)  # greedy
            self.assertEqual(entry["top_logprobs"][0]["logprob"], entry["logprob"])
        self.assertEqual(answer_of("-p", "hi", "--logprobs", "0")["logprobs"][0]["top_logprobs"], [])


class WithoutTokenizer(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        for name in ("config.json", "model.safetensors"):
            shutil.copy(pathlib.Path(CHAIN) / name, self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def test_token_prompts_are_served(self):
        answer = answer_of("--tokens", "1,2,10", model=self.folder.name)
        self.assertEqual((answer["text"], answer["tokens"]), (None, list(ANSWER.encode())))
        done = run("generate", "-m", self.folder.name, "--tokens", "10", "-n", "3")
        self.assertEqual((done.returncode, done.stdout), (0, b"97,240,159\n"))

    def test_text_prompts_are_refused(self):
        for arguments in [("-p", "x"), ("--tokens", "10", "--stop", "x")]:
            done = run("generate", "-m", self.folder.name, *arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn("tokenizer", done.stderr.decode())


class Failures(unittest.TestCase):
    def refused(self, *arguments, code, says, stdin=b""):
        done = run(*arguments, stdin=stdin)
        self.assertEqual((done.returncode, done.stdout), (code, b""), done.stderr)
        self.assertIn(says, done.stderr.decode())

    def test_bad_prompts(self):
        self.refused(*GENERATE, "-p", "", code=2, says="the prompt is empty")
        self.refused(*GENERATE, "-p", "-", code=2, says="the prompt is empty")
        self.refused(*GENERATE, "-p", b"ab\xff", code=2, says="UTF-8")
        self.refused(*GENERATE, "--raw", "-p", "-", stdin=b"\xc3", code=2, says="UTF-8")
        self.refused(*GENERATE, "--tokens", "258", code=2, says="the vocabulary has 258 tokens")
        self.refused(*GENERATE, "--file", "/nowhere/prompt.txt", code=1, says="/nowhere/prompt.txt")

    def test_a_prompt_longer_than_the_context(self):
        self.refused(*GENERATE, "-p", "x", "--ctx", "8", code=1, says="maximum context length is 8 tokens; the prompt has 20")

    def test_models_that_are_not_there(self):
        self.refused("generate", "-m", "/nowhere/model", "-p", "x", code=1, says="/nowhere/model")
        self.refused("generate", "-p", "x", code=1, says="smollm2")
        self.refused("generate", "-m", "no-such-org/model", "-p", "x", code=1, says="no-such-org/model")
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(pathlib.Path(CHAIN) / "config.json", folder)
            self.refused("generate", "-m", folder, "-p", "x", code=1, says=folder)

    def test_a_truncated_model_names_its_file(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(CHAIN, folder, dirs_exist_ok=True)
            weights = pathlib.Path(folder) / "model.safetensors"
            os.truncate(weights, weights.stat().st_size - 100)
            self.refused("generate", "-m", folder, "-p", "x", code=1, says="model.safetensors")

    def test_pipes_and_devices_in_place_of_files_are_named_and_not_waited_for(self):
        for name in ("model.safetensors", "config.json", "tokenizer.json"):
            with tempfile.TemporaryDirectory() as folder:
                shutil.copytree(CHAIN, folder, dirs_exist_ok=True)
                file = pathlib.Path(folder) / name
                file.unlink()
                os.mkfifo(file)
                self.refused("generate", "-m", folder, "-p", "x", code=1, says=name)
                file.unlink()
                file.symlink_to("/dev/zero")
                self.refused("generate", "-m", folder, "-p", "x", code=1, says=name)
        with tempfile.TemporaryDirectory() as folder:
            os.mkfifo(f"{folder}/m.gguf")
            self.refused("generate", "-m", f"{folder}/m.gguf", "-p", "x", code=1, says="m.gguf")

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "wb") as full:
            done = run(*GENERATE, "-p", "x", stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn("No space left", done.stderr.decode())

    def test_messages_quoted_from_a_template_carry_no_terminal_commands(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write("{{ raise_exception('a\\x1b[2Jb\\rc') }}")
            file.flush()
            done = run(*GENERATE, "-p", "x", "--chat-template", file.name)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"a?[2Jb?c", done.stderr)

    def test_closed_standard_streams_are_not_taken_by_other_files(self):
        """A shell's <&- and >&-: an end of input to read, an error where the answer cannot go."""
        cases = [((0,), ("generate", "-m", CHAIN, "-p", "x"), 0), ((0,), ("chat", "-m", CHAIN), 0),
                 ((1,), ("generate", "-m", CHAIN, "-p", "x"), 1), ((0, 1, 2), ("generate", "-m", CHAIN, "-p", "x"), 1),
                 ((0, 1, 2), ("chat", "-m", CHAIN), 0)]
        for closed, arguments, code in cases:
            redirections = " ".join(f"{descriptor}>&-" for descriptor in closed)
            command = ["sh", "-c", f'exec "$0" "$@" {redirections}', BINARY, *arguments]
            done = subprocess.run(command, env=ENVIRONMENT, timeout=30, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.assertEqual(done.returncode, code, (closed, arguments))

    def test_a_reader_that_leaves_ends_the_program_without_a_word(self):
        program = start(*LONG, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertTrue(program.stdout.read(1))
        program.stdout.close()
        self.assertEqual(program.stderr.read(), b"")
        self.assertEqual(program.wait(30), 1)
        program.stderr.close()

    def test_ctrl_c_ends_a_long_answer(self):
        program = start(*LONG, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertTrue(program.stdout.read(1))
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=30)
        self.assertEqual((program.returncode, err), (130, b""))


class EvalLogits(unittest.TestCase):
    def logits(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.safetensors")
            done = run("eval", "logits", "-m", RANDOM, "-o", path, *arguments)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertEqual(os.listdir(folder), ["out.safetensors"])
            return load_file(path)["logits"], done.stdout

    def test_writes_one_f32_row_for_each_token(self):
        tokens = [104, 105, 10, 7, 200]
        whole, out = self.logits("--tokens", ",".join(map(str, tokens)))
        self.assertEqual((whole.shape, whole.dtype, out), ((5, 258), np.float32, b""))
        steps, _ = self.logits("--tokens", ",".join(map(str, tokens)), "--stepwise")
        # One forward and five differ in the order of sums only: 64-term dot products of values near 1, in f32.
        np.testing.assert_allclose(steps, whole, atol=1e-4)
        generated = answer_of("--tokens", ",".join(map(str, tokens)), "-n", "1", "--ignore-eos", model=RANDOM)["tokens"]
        self.assertEqual([int(whole[-1].argmax())], generated)

    def test_json_names_path_and_shape(self):
        _, out = self.logits("--tokens", "1,2", "--json")
        self.assertEqual(json.loads(out)["shape"], [2, 258])

    def test_a_path_that_cannot_be_written_is_named(self):
        done = run("eval", "logits", "-m", RANDOM, "-o", "/nowhere/out.safetensors", "--tokens", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere/out.safetensors", done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
