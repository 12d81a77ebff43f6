#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Builds README's trainer with the one command that README gives, and with the compiled library in place of the
implementations; runs both. Each prints its plan, whose times are measured. Their losses must be equal: all plans
give the same bits, and both programs use the best instruction set of this machine."""

import argparse
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile


def block(readme, language, wanted):
    """The one block of README in this language that contains `wanted`."""
    found = [text for text in re.findall(rf"```{language}\n(.*?)```", readme, re.DOTALL) if wanted in text]
    if len(found) != 1:
        sys.exit(f"README.md: expected one block of {language} with '{wanted}', found {len(found)}")
    return found[0]


def run(command, directory):
    result = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=600, check=False)
    if result.returncode != 0:
        sys.exit(f"{shlex.join(map(str, command))}: exit status {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def losses_in(output):
    """The lines of its steps. The plan before them must say that state is off the device."""
    if not re.search(r"^plan for llama.*^  optimizer state: [0-9.]+ % on the device, (?!0\.0 % updated by the CPU, 0\.0 %)",
                     output, re.DOTALL | re.MULTILINE):
        sys.exit(f"the trainer printed no plan with state off the device:\n{output}")
    steps = re.findall(r"^step [0-9]+: loss .*$", output, re.MULTILINE)
    if len(steps) != 10:
        sys.exit(f"expected 10 steps in the output of the trainer, found {len(steps)}:\n{output}")
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", required=True, help="in place of g++")
    parser.add_argument("--compiled", required=True, type=pathlib.Path, help="the library of superoffload::compiled")
    parser.add_argument("root", type=pathlib.Path, help="of this project")
    options = parser.parse_args()
    root = options.root.resolve()
    readme = (root / "README.md").read_text()

    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        trainer = block(readme, "cpp", "int main(")
        example = (root / "examples/trainer/main.cpp").read_text()
        if re.sub(r"\A(//.*\n|\n)*", "", example) != trainer:
            sys.exit("examples/trainer/main.cpp is not the trainer of README.md")
        (directory / "trainer.cpp").write_text(example)
        (directory / "superoffload").symlink_to(root)
        command = shlex.split(block(readme, "sh", "g++ -std=c++20").replace("\\\n", " "))
        if command[0] != "g++" or "trainer.cpp" not in command:
            sys.exit(f"README.md: expected one call of g++ for trainer.cpp, found {shlex.join(command)}")
        command[0] = options.compiler
        run(command, directory)
        arguments = [root / "tests/data/models/llama", root / "examples/data/alpaca_en_demo.json"]
        output = run(["./trainer", *arguments, "tuned"], directory)
        print(output)

        at = command.index("trainer.cpp")
        command[at:at + 1] = ["-DSUPEROFFLOAD_COMPILED", "trainer.cpp", str(options.compiled.resolve())]
        run(command, directory)
        if losses_in(run(["./trainer", *arguments, "tuned_too"], directory)) != losses_in(output):
            sys.exit("the header-only trainer and the compiled one differ")


if __name__ == "__main__":
    main()
