"""Asks a real model questions whose answers it knows, greedily, through the program itself.

usage: real_models_test.py PROGRAM MODEL (the model was fetched with ./dev setup MODEL; a missing one is a failure)
"""
import json
import subprocess
import sys
import unittest

MODEL = sys.argv.pop(2)
PROGRAM = sys.argv.pop(1)

# {model: {arithmetic: [(prompt, a word that a sensible answer holds)]}}. The smallest model is close to a tie on its
# first word for some questions, so the two arithmetics are not asked the same.
QUESTIONS = {
    "smollm2": {
        "reference": [("What is the capital of France?", "Paris"), ("What is the opposite of hot?", "cold")],
        "native": [("What is the chemical formula of water?", "H2O"), ("What is the opposite of hot?", "cold")],
    },
    "gemma3-270m": {
        "native": [("Monday, Tuesday, Wednesday,", "Thursday, Friday"), ("One, two, three, four,", "five, six")],
        "reference": [("One, two, three, four,", "five, six")],
    },
    "qwen2.5-0.5b": {
        "native": [("What is the capital of France?", "Paris"), ("What is 12 + 30?", "42")],
        "reference": [("What is the capital of France?", "Paris")],
    },
}
# This Gemma file is the pretrained model: it continues a text, it was never taught to answer.
FLAGS = {"gemma3-270m": ["--raw"]}


def generate(math, prompt, *flags):
    command = [PROGRAM, "generate", "-m", MODEL, "-p", prompt, "--math", math, "--temp", "0", "-n", "12", "--json",
               *FLAGS.get(MODEL, []), *flags]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ended with {answer.returncode}: {answer.stderr}")
    return json.loads(answer.stdout)


class RealModel(unittest.TestCase):
    def test_questions_are_answered_sensibly(self):
        for math, questions in QUESTIONS[MODEL].items():
            for question, word in questions:
                with self.subTest(math=math, question=question):
                    answer = generate(math, question)
                    print(f"{MODEL}, {math}: {question} -> {answer['text']!r}")
                    self.assertIn(word.lower(), answer["text"].lower())
                    self.assertEqual(answer["math"], math)
                    self.assertEqual(len(answer["tokens"]), answer["timings"]["completion_tokens"])

    def test_the_same_question_gives_the_same_tokens(self):
        question = QUESTIONS[MODEL]["native"][0][0]
        first, second = (generate("native", question, "--seed", seed)["tokens"] for seed in ("7", "8"))
        self.assertEqual(first, second)


if __name__ == "__main__":
    unittest.main()
