"""godwit bench: the shape of its report, over a tiny model."""

import json
import unittest

from program import RANDOM, run


class Bench(unittest.TestCase):
    def test_the_report_names_machine_model_and_one_run_for_each_arithmetic(self):
        flags = ("--prompt", "8", "--generate", "4", "--repeats", "2", "--threads", "1", "--json")
        done = run("bench", "-m", RANDOM, *flags, "--against", "reference")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(list(report), ["machine", "model", "runs"])
        self.assertEqual(list(report["machine"]), ["cpu", "cpus", "level", "threads"])
        self.assertEqual(report["machine"]["threads"], 1)
        self.assertEqual([run_["math"] for run_ in report["runs"]], ["reference", "reference"])  # auto: no native kernel
        for entry in report["runs"]:
            self.assertIsNone(entry["activations"])  # in reference arithmetic they have the model's dtype
            self.assertEqual((entry["batch"], entry["prompt"], entry["generate"], entry["repeats"]), (1, 8, 4, 2))
            self.assertEqual((entry["kv"], entry["kv_start"], entry["bytes_per_token"]), ("dense", 0, 2 * 2 * 32 * 4))
            # Two rounds of a chunk and four tokens each.
            self.assertEqual((entry["specialization"], entry["steps"], entry["planned_steps"]), ("generic", 10, 0))
            for key in ["prefill_tok_s", "decode_tok_s", "peak_bytes"]:
                self.assertGreater(entry[key], 0, key)

    def test_the_policy_is_part_of_the_run(self):
        flags = ("--prompt", "8", "--generate", "4", "--repeats", "1", "--json", "--kv", "affine:4:32", "--kv-start", "3")
        entry = json.loads(run("bench", "-m", RANDOM, *flags).stdout)["runs"][0]
        # 2 layers, K and V, one head of 32 elements: 4 bits each, and a scale and a bias of f32.
        self.assertEqual((entry["kv"], entry["kv_start"], entry["bytes_per_token"]), ("affine:4:32", 3, 2 * 2 * (16 + 8)))

    def test_more_tokens_than_the_context_are_refused(self):
        done = run("bench", "-m", RANDOM, "--ctx", "16", "--prompt", "17", "--generate", "4")
        self.assertEqual(done.returncode, 1)
        self.assertIn("context", done.stderr.decode())

    def test_a_step_is_split_by_node_and_set_beside_memory(self):
        done = run("bench", "-m", RANDOM, "--quantize-on-load", "q8", "--step", "--prompt", "4", "--generate", "4", "--repeats", "2",
                   "--json")  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        # embedding, attention, mlp, norm, head, and the rotations of all layers
        self.assertEqual(len(report["nodes_us"]), 6, report)
        self.assertEqual((report["specialization"], report["steps"], report["planned_steps"]), ("generated", 8, 8))
        graph = json.loads(run("bench", "-m", RANDOM, "--quantize-on-load", "q8", "--step", "--prompt", "4", "--generate", "4",
                               "--repeats", "2", "--plan", "off", "--json").stdout)  # fmt: skip
        self.assertEqual(len(graph["nodes_us"]), 5, graph)
        self.assertEqual((graph["specialization"], graph["steps"], graph["planned_steps"]), ("generic", 8, 0))
        self.assertLess(sum(report["nodes_us"].values()), report["step_us"] * 1.5)  # medians of different rounds
        self.assertTrue(0 < report["outside_share"] < 1, report)
        self.assertGreater(report["weight_bytes"], 0)
        self.assertGreater(report["read_bytes_per_s"], 1e6)
        refused = run("bench", "-m", RANDOM, "--math", "reference", "--step")
        self.assertEqual(refused.returncode, 1)
        self.assertIn(b"--step", refused.stderr)

    def test_opening_is_measured_with_and_without_text(self):
        for flags, text in (((), True), (("--no-text",), False)):
            report = json.loads(run("bench", "-m", RANDOM, "--load", "--json", *flags).stdout)
            self.assertEqual(report["text"], text)
            self.assertGreater(report["weights_bytes"], 0)

    def test_the_level_is_the_one_asked_for(self):
        done = run("bench", "-m", RANDOM, "--prompt", "2", "--generate", "2", "--repeats", "1", "--json",
                   environment={"GODWIT_CPU_LEVEL": "scalar"})  # fmt: skip
        self.assertEqual(json.loads(done.stdout)["machine"]["level"], "scalar")


if __name__ == "__main__":
    unittest.main()
