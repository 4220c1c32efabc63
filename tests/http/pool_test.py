"""Several models in one server: names, loading, unloading, memory, and answers that know nothing of each other."""

import json
import math
import pathlib
import shutil
import tempfile
import threading
import unittest

import server as support
from server import Server, chat, wait_for

CHAT = "/v1/chat/completions"
# Greedy and sampled, short and long, with a prefix in common.
QUESTIONS = [chat("same beginning, " + end, seed=5, max_tokens=12, temperature=t) for end in ("a", "bc") for t in (0, 1)]


def numbers_of(folder: pathlib.Path) -> int:
    """Elements of all tensors, from the heads of the files."""
    count = 0
    for file in folder.glob("*.safetensors"):
        raw = file.read_bytes()
        head = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        count += sum(math.prod(tensor["shape"]) for name, tensor in head.items() if name != "__metadata__")
    return count


def answer(server: Server, model: str, body: dict) -> tuple:
    got = server.post(CHAT, body | {"model": model, "logprobs": True, "top_logprobs": 2})
    return got["model"], json.dumps(got["choices"])


class Pool(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        broken = cls.folder / "broken"
        shutil.copytree(support.MODELS / "chain", broken)
        weights = broken / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])
        cls.config = cls.folder / "models.toml"
        cls.config.write_text(f"""
[[models]]
model = "{support.MODELS}/random"
alias = ["noise", "r"]
[[models]]
model = "{support.MODELS}/chain"
ctx = 4096
[[models]]
model = "{broken}"
""")

    def start(self, *flags) -> Server:
        return self.enterContext(Server(None, "--config", str(self.config), *flags))

    def loaded(self, server: Server) -> list[str]:
        return [model["id"] for model in server.ask_json("/stats")["models"] if model["is_loaded"]]

    def test_names_states_and_models_that_cannot_be_loaded(self):
        server = self.start("--preload", "none")
        self.assertEqual(self.loaded(server), [])
        listed = {model["id"]: model for model in server.ask_json("/v1/models")["data"]}
        self.assertEqual(set(listed), {"random", "noise", "r", "chain", "broken"})
        self.assertEqual((listed["chain"]["context_length"], listed["chain"]["is_loaded"]), (4096, False))
        self.assertGreater(listed["chain"]["meta"]["size"], 1000)
        self.assertEqual(listed["chain"]["meta"]["n_params"], numbers_of(support.MODELS / "chain"))
        self.assertIsNone(listed["broken"]["meta"]["n_params"])
        self.assertEqual(server.post(CHAT, chat(model="chain", temperature=0))["choices"][0]["message"]["content"], "a😸b作c")
        self.assertEqual(self.loaded(server), ["chain"])
        self.assertEqual(server.ask_json("/v1/models/chain")["meta"]["n_params"], listed["chain"]["meta"]["n_params"])
        self.assertIn("chat", server.ask_json("/v1/models/chain")["capabilities"])
        for _ in range(2):
            status, _, raw = server.ask("POST", CHAT, chat(model="broken"))
            self.assertEqual((status, json.loads(raw)["error"]["code"]), (500, "model_load_failed"))
        status, _, raw = server.ask("POST", CHAT, chat(model="nobody"))
        self.assertEqual((status, json.loads(raw)["error"]["code"]), (404, "model_not_found"))
        self.assertEqual(server.post(CHAT, chat(max_tokens=1))["model"], "random", "the first one is the default")
        self.assertEqual(server.post(CHAT, chat(model="r", max_tokens=1))["model"], "random")
        server.post("/admin/models/unload", {"model": "noise"})
        wait_for(lambda: self.loaded(server) == ["chain"])
        server.post("/admin/models/load", {"model": "random"})
        self.assertEqual(self.loaded(server), ["random", "chain"])

    def test_answers_equal_those_of_each_model_alone_however_they_mix(self):
        alone = {}
        for model in ("random", "chain"):
            with Server(model, *(("--ctx", "4096") if model == "chain" else ())) as server:
                alone[model] = [answer(server, model, body) for body in QUESTIONS]
        server = self.start()
        for _ in range(3):
            for index, body in enumerate(QUESTIONS):
                for model in alone:
                    self.assertEqual(answer(server, model, body), alone[model][index])
        wrong = []

        def client(model: str):
            got = [answer(server, model, body) for body in QUESTIONS * 3]
            if got != alone[model] * 3:
                wrong.append(model)

        threads = [threading.Thread(target=client, args=(model,)) for model in alone for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_twenty_swaps_in_the_room_of_one_leave_nothing_behind(self):
        server = self.start("--memory", "40M", "--state-memory", "30M")

        def swap():
            for model in ("random", "chain"):
                self.assertEqual(server.post(CHAT, chat(model=model, max_tokens=2))["model"], model)
                self.assertEqual(self.loaded(server), [model])

        for _ in range(4):
            swap()
        before = server.resident_bytes()
        for _ in range(16):
            swap()
        # Models that stayed would show with 22 MB of weights, and whatever else they hold. (MLX keeps a sleeping thread for
        # each engine of `reference` arithmetic that has ended.)
        self.assertLess(server.resident_bytes() - before, 8 << 20)

    def test_an_idle_model_goes_and_comes_back(self):
        server = self.start("--idle-unload", "0.3")
        self.assertEqual(self.loaded(server), ["random"])
        first = answer(server, "random", QUESTIONS[1])
        wait_for(lambda: self.loaded(server) == [])
        self.assertEqual(server.ask("GET", "/readyz")[0], 200)
        self.assertEqual(answer(server, "random", QUESTIONS[1]), first)


if __name__ == "__main__":
    unittest.main()
