#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Builds README's trainer with the one command in README, and with the installed compiled library by what
pkg-config says of it; runs both. Each prints its plan, whose times are measured. Their losses must be equal: all plans
give the same bits, and both programs use the best instruction set of this machine."""

import argparse
import os
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


def flags_of(package, prefix):
    """What pkg-config says of an installed package."""
    directories = [str(path.parent) for path in prefix.rglob(f"{package}.pc")]
    if len(directories) != 1:
        sys.exit(f"{package}.pc: expected one in {prefix}, found {len(directories)}")
    os.environ["PKG_CONFIG_PATH"] = directories[0]
    return shlex.split(run(["pkg-config", "--cflags", "--libs", package], prefix))


def losses_in(output):
    """The lines of the steps. The plan before them must place state off the device."""
    if not re.search(r"^plan for llama.*^  optimizer state: [0-9.]+ % on the device, (?!0\.0 % updated by the CPU, 0\.0 %)",
                     output, re.DOTALL | re.MULTILINE):
        sys.exit(f"the trainer printed no plan with state off the device:\n{output}")
    steps = re.findall(r"^step [0-9]+: loss .*$", output, re.MULTILINE)
    if len(steps) != 10:
        sys.exit(f"expected 10 steps in the output of the trainer, found {len(steps)}:\n{output}")
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", required=True, help="used instead of g++")
    parser.add_argument("--cmake", required=True)
    parser.add_argument("--build", required=True, type=pathlib.Path, help="where superoffload::compiled is built")
    parser.add_argument("root", type=pathlib.Path, help="the root of this project")
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

        prefix = directory / "prefix"
        for component in "superoffload_development", "superoffload_compiled":
            run([options.cmake, "--install", options.build, "--component", component, "--prefix", prefix], directory)
        of_readme = {word for word in command if re.match("-(std|f|l|p)", word)}
        missing = of_readme - set(flags_of("superoffload", prefix))
        if not of_readme or missing:
            sys.exit(f"superoffload.pc lacks flags of README's command: {shlex.join(sorted(missing))}")
        run([options.compiler, "trainer.cpp", *flags_of("superoffload-compiled", prefix),
             "-o", "trainer"], directory)
        if losses_in(run(["./trainer", *arguments, "tuned_too"], directory)) != losses_in(output):
            sys.exit("the header-only trainer and the compiled one differ")


if __name__ == "__main__":
    main()
