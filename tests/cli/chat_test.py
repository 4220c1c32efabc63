"""godwit chat over pipes and over a terminal."""

import os
import pathlib
import pty
import select
import signal
import subprocess
import tempfile
import time
import unittest

from program import ANSWER, CHAIN, RANDOM, run, start

# The model's answer tells how many messages the prompt held: the whole ANSWER for one, its end for more.
COUNTING_TEMPLATE = "{% if messages|length == 1 %}{{ '\\n' }}{% else %}b{% endif %}"
ALONE, NOT_ALONE = ANSWER, "作c"
ENDLESS = ("chat", "-m", RANDOM, "-n", "-1", "--ignore-eos", "--temp", "1", "--seed", "3")


class Piped(unittest.TestCase):
    def answers(self, text, *flags, code=0):
        with tempfile.NamedTemporaryFile(suffix=".jinja") as template:
            pathlib.Path(template.name).write_text(COUNTING_TEMPLATE)
            done = run("chat", "-m", CHAIN, "--chat-template", template.name, *flags, stdin=text.encode())
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertTrue(done.stdout.endswith(b"\n") or not done.stdout)
        return done.stdout.decode().split("\n")[:-1], done.stderr.decode()

    def test_each_line_is_a_turn_and_the_history_grows(self):
        self.assertEqual(self.answers("hi\nand?\n"), ([ALONE, NOT_ALONE], ""))

    def test_reset_forgets_the_turns(self):
        self.assertEqual(self.answers("hi\nand?\n/reset\nhi\n"), ([ALONE, NOT_ALONE, ALONE], ""))

    def test_system_sets_and_removes_the_system_message(self):
        self.assertEqual(self.answers("/system be brief\nhi\n/reset\nhi\n/reset\n/system\nhi\n")[0], [NOT_ALONE, NOT_ALONE, ALONE])
        self.assertEqual(self.answers("hi\n", "--system", "be brief")[0], [NOT_ALONE])

    def test_exit_end_of_input_and_a_last_line_without_newline(self):
        self.assertEqual(self.answers("hi\n/exit\nhi\n")[0], [ALONE])
        self.assertEqual(self.answers("hi")[0], [ALONE])
        self.assertEqual(self.answers("")[0], [])
        self.assertEqual(self.answers("\n\nhi\r\n")[0], [ALONE])  # empty lines are no turns

    def test_help_and_unknown_commands_go_to_stderr(self):
        out, err = self.answers("/help\n")
        self.assertEqual(out, [])
        self.assertIn("/reset", err)
        out, err = self.answers("/rset\nhi\n", code=1)
        self.assertEqual(out, [ALONE])
        self.assertIn("unknown command /rset", err)

    def test_a_failed_turn_is_taken_back_and_the_chat_goes_on(self):
        done = run("chat", "-m", CHAIN, "--ctx", "40", stdin=b"a very long turn that does not fit the context\nhi\n")
        self.assertEqual((done.returncode, done.stdout.decode()), (1, ANSWER + "\n"))
        self.assertIn("maximum context length is 40", done.stderr.decode())

    def test_ctrl_c_stops_the_answer_and_not_the_program(self):
        program = start(*ENDLESS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        program.stdin.write(b"hi\n")
        program.stdin.flush()
        self.assertTrue(program.stdout.read(1))  # the endless answer has begun
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(b"/exit\n", timeout=30)
        self.assertEqual((program.returncode, err), (0, b""))
        self.assertTrue(out.endswith(b"\n"))


class Terminal(unittest.TestCase):
    """The program with a terminal on stdin, stdout and stderr."""

    def setUp(self):
        self.master, slave = pty.openpty()
        self.program = start("chat", "-m", CHAIN, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        self.screen = ""
        self.wait_for("> ")

    def tearDown(self):
        self.program.kill()
        self.program.wait()
        os.close(self.master)

    def wait_for(self, text):
        """Reads until `text` comes after what was waited for before."""
        deadline = time.monotonic() + 30
        while text not in self.screen:
            ready, _, _ = select.select([self.master], [], [], max(0, deadline - time.monotonic()))
            self.assertTrue(ready, f"no {text!r} in {self.screen!r}")
            self.screen += os.read(self.master, 1024).decode(errors="replace")
        self.screen = self.screen.split(text, 1)[1]

    def test_answers_and_asks_again(self):
        os.write(self.master, b"hi\n")
        self.wait_for(ANSWER[-1])
        self.wait_for("> ")
        os.write(self.master, b"\x04")  # Ctrl-D
        self.assertEqual(self.program.wait(30), 0)

    def test_a_second_ctrl_c_at_the_prompt_leaves(self):
        self.program.send_signal(signal.SIGINT)
        self.wait_for("Ctrl-C again")
        self.wait_for("> ")
        os.write(self.master, b"hi\n")  # a turn in between starts the count anew
        self.wait_for(ANSWER[-1])
        self.wait_for("> ")
        self.program.send_signal(signal.SIGINT)
        self.wait_for("Ctrl-C again")
        self.assertIsNone(self.program.poll())
        self.program.send_signal(signal.SIGINT)
        self.assertEqual(self.program.wait(30), 130)


if __name__ == "__main__":
    unittest.main()
