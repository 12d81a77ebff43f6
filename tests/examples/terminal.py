#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""What a run draws on a terminal, and leaves there: terminal.py FINETUNE MODEL DATASET

Runs on a pseudo terminal. Statuses must fit its width, also after it changes, and be gone at the end, after an error and
after SIGINT. NO_COLOR, TERM=dumb, --quiet and --log_level are tried, and a terminal that is not read.
"""

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

ERASE = "\r\x1b[2K"


class Run:
    """A program on a terminal of its own."""

    def __init__(self, arguments, columns=100, environment=()):
        self.screen, theirs = pty.openpty()
        self.resize(columns)
        variables = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
        self.process = subprocess.Popen(arguments, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
                                        env={**variables, "TERM": "xterm", **dict(environment)})
        os.close(theirs)
        self.text = ""

    def resize(self, columns):
        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))

    def read_until(self, stop, seconds=300):
        """Reads until stop(text) holds, or to the end."""
        until = time.monotonic() + seconds
        while not stop(self.text):
            assert time.monotonic() < until, f"waited too long; so far:\n{self.text!r}"
            if not select.select([self.screen], [], [], 0.1)[0]:
                continue
            try:
                part = os.read(self.screen, 65536)
            except OSError:  # the other end is closed
                part = b""
            if not part:
                break
            self.text += part.decode()

    def end(self):
        self.read_until(lambda _: False)
        code = self.process.wait(timeout=30)
        os.close(self.screen)
        return code

    def statuses(self):
        """What was drawn after an erasure, and is no line."""
        drawn = re.findall(re.escape(ERASE) + r"([^\r\n\x1b]*)(?=\r\x1b|$)", self.text)
        return [text for text in drawn if text]

    def shown(self):
        """The lines that are left on the terminal."""
        lines = [""]
        for part in re.split(r"(\r\n|\r|\x1b\[[0-9;]*[A-Za-z])", self.text):
            if part == "\r\n":
                lines.append("")
            elif part == "\x1b[2K":
                lines[-1] = ""
            elif part != "\r" and not part.startswith("\x1b"):
                lines[-1] += part
        return lines


def check_clean(run, columns):
    assert all(len(text) < columns for text in run.statuses()), max(run.statuses(), key=len)
    left = [line for line in run.shown() if re.search(r"\[=*>? *\] \d+/|^[a-zA-Z ]+  \d+:\d\d", line)]
    assert not left, left
    assert run.shown()[-1] == "", run.shown()[-1]


def main(program, model, dataset):
    with tempfile.TemporaryDirectory() as directory:
        check(program, model, dataset, pathlib.Path(directory))


def check(program, model, dataset, root):
    number = 0

    def arguments(*more):
        nonlocal number
        number += 1
        sizes = ["--max_length", "512", "--batch_size", "4"] if "--max_length" not in more else []
        return [program, "--model", model, "--dataset", dataset, "--dataset_percentage", "50", "--output_dir",
                root / str(number), "--device", "cpu", *sizes, *more]

    # A whole run, with evaluations that take more than a second.
    held_out = root / "held_out.json"
    held_out.write_text(json.dumps(json.loads(pathlib.Path(dataset).read_text())[:300]))
    run = Run(arguments("--max_steps", "20", "--eval_dataset", held_out), environment=[("SUPEROFFLOAD_NUM_THREADS", "1")])
    assert run.end() == 0, run.text
    drawn = run.statuses()
    steps = [text for text in drawn if re.match(r"\[=*>? *\] \d+/20  loss [\d.]+  \d+ tokens/s  \d+:\d\d left  device ", text)]
    assert steps and any("  host " in text for text in steps), drawn
    assert any(re.match(r"evaluating  0:0[1-9]", text) for text in drawn), drawn
    check_clean(run, 100)
    assert any(re.match("step 20/20  loss ", line) for line in run.shown()), run.shown()
    assert not re.search(r"\x1b\[[0-9;]*m", run.text)  # nothing to colour was said

    # The width changes; then SIGINT, which saves and ends with code 7.
    run = Run(arguments("--max_steps", "100000"), columns=60)
    run.read_until(lambda text: len(re.findall(r"\] \d+/100000", text)) > 3)
    assert all(len(text) < 60 for text in run.statuses()), run.statuses()
    run.resize(24)
    time.sleep(0.5)
    run.text = ""
    run.read_until(lambda text: text.count(ERASE + "[") > 2)
    assert all(len(text) < 24 for text in run.statuses()[1:]), run.statuses()
    run.resize(100)
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 7
    check_clean(run, 100)
    assert any(line.startswith("warning: stopped by signal 2") for line in run.shown())

    # Two signals end it at once, and one does before the run begins.
    run = Run(arguments("--max_steps", "100000"))
    run.read_until(lambda text: text.count(ERASE + "[") > 2)
    for _ in range(2):
        run.process.send_signal(signal.SIGINT)
        time.sleep(0.001)
    assert run.end() in (7, -signal.SIGINT)
    check_clean(run, 100)

    # An error in mid-run: red on a terminal, but not with NO_COLOR.
    failing = ["--lr", "1e30", "--on_nonfinite", "stop", "--max_steps", "50"]
    for variables, red in (((), True), ((("NO_COLOR", "1"),), False)):
        run = Run(arguments(*failing), environment=variables)
        assert run.end() == 6, run.text
        check_clean(run, 100)
        assert ("\x1b[31merror:\x1b[0m" in run.text) == red, run.text
        assert any("error: step " in line for line in run.shown())

    # No statuses: plain lines instead, or none.
    for more, variables in ((("--log_level", "info"), ()), ((), (("TERM", "dumb"),))):
        run = Run(arguments("--max_steps", "3", "--log_interval", "1", *more), environment=variables)
        assert run.end() == 0 and "\x1b" not in run.text, run.text
        assert sum(line.startswith("step ") and "/3" in line for line in run.shown()) == 3, run.shown()
    run = Run(arguments("--max_steps", "3", "--quiet"))
    assert run.end() == 0 and run.text == "", run.text

    # A terminal that nobody reads, and that takes no more soon, does not stop the run.
    run = Run(arguments("--max_steps", "2500", "--max_length", "16", "--batch_size", "1", "--label_mask", "none",
                        "--num_train_epochs", "9", "--log_level", "info", "--log_interval", "1"))
    until = time.monotonic() + 300
    while not (root / str(number) / "model").exists():
        assert time.monotonic() < until and run.process.poll() is None, "the run waits for its terminal"
        time.sleep(0.1)
    assert run.end() == 0 and " lines were left out: they were not read" in run.text, run.text[-300:]
    print(f"{len(drawn)} statuses were drawn; nothing was left")


if __name__ == "__main__":
    main(*sys.argv[1:])
