#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Compile time of every public header and of every program's sources.

Headers are checked alone (-fsyntax-only), programs compiled (-O2 -c), both with SUPEROFFLOAD_COMPILED; README's trainer
also as one header-only program (-O2 -march=native). Seconds are processor time of the compiler, the least of --repeat
runs, so that other work on the machine disturbs little. Budgets are multiples of what the headers of nlohmann/json and
Eigen take in the same run, so that they hold on any machine.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import resource
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
UMBRELLA = "include/superoffload/superoffload.hpp"
TRAINER = "bench/compile_time/trainer.cpp"  # one architecture in two precisions
MODEL = "examples/finetune_llama/main.cpp"  # a fine-tuner of one architecture, above what all share
CORE = "examples/core/cpu_bf16.cpp"  # what all of them share, in one precision
CONSUMER = "tests/consumer/project/trainer.cpp"
HEADER_ONLY = CONSUMER + " (header-only)"
REFERENCE = "nlohmann/json and Eigen"
# Multiples of the reference.
BUDGETS = {UMBRELLA: 1.2, TRAINER: 15, MODEL: 7, CORE: 15, CONSUMER: 7, HEADER_ONLY: 35}
# Headers that other headers include.
PARTS = re.compile(r"/(cpu/kernels|impl)/")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="headers or sources, relative to the root (default: all)")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"), help="default: $CXX or g++")
    parser.add_argument("--repeat", type=int, default=1, help="runs per file (default 1)")
    parser.add_argument("--json", metavar="FILE", help="write the results there too")
    budgets = ", ".join(f"{file} {multiple:g}" for file, multiple in BUDGETS.items())
    parser.add_argument("--check", action="store_true", help=f"fail beyond the budgets, as multiples of {REFERENCE}: {budgets}")
    return parser.parse_args()


def all_files():
    headers = sorted((ROOT / "include").rglob("*.hpp"))
    programs = sorted((ROOT / "examples").rglob("*.cpp"))
    files = [path.relative_to(ROOT).as_posix() for path in headers + programs] + [TRAINER, CONSUMER, HEADER_ONLY]
    return [file for file in files if not PARTS.search(file) and "cuda" not in file]


def compile_once(compiler, file, directory):
    """Processor seconds and the object's bytes (0 for a header)."""
    header_only = file == HEADER_ONLY
    headers = ["nlohmann/json.hpp", "Eigen/Dense"] if file == REFERENCE else []
    if file.endswith(".hpp"):
        headers = [file.removeprefix("include/")]
    source, target = ROOT / (CONSUMER if header_only else file), pathlib.Path(directory, "object.o")
    command = [*shlex.split(compiler), "-std=c++20", f"-I{ROOT / 'include'}", f"-I{ROOT / 'examples'}"]
    command += ["-isystem", "/usr/include/eigen3"] if header_only or file == REFERENCE else ["-DSUPEROFFLOAD_COMPILED"]
    command += ["-march=native", "-ffp-contract=off"] if header_only else []
    if headers:
        alone = pathlib.Path(directory, "alone.cpp")
        alone.write_text("".join(f"#include <{header}>\n" for header in headers))
        command += ["-fsyntax-only", str(alone)]
    else:
        command += ["-O2", "-c", str(source), "-o", str(target)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if result.returncode != 0:
        errors = [line for line in result.stderr.splitlines() if "error" in line] or ["no message"]
        raise RuntimeError(errors[0])
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, 0 if headers else target.stat().st_size


def git(*command):
    try:
        return subprocess.run(["git", "-C", ROOT, *command], capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def processor():
    try:
        models = re.findall(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        models = []
    return f"{models[0] if models else platform.machine()}, {os.cpu_count()} cores"


def main():
    options = arguments()
    results, failures = [], []
    with tempfile.TemporaryDirectory() as directory:
        for file in [REFERENCE, *(options.files or all_files())]:
            try:
                runs = [compile_once(options.compiler, file, directory) for _ in range(max(options.repeat, 1))]
            except RuntimeError as failure:
                failures.append(f"{file}: does not compile: {failure}")
                continue
            seconds, size = min(runs)
            results.append({"file": file, "seconds": round(seconds, 3), "object_bytes": size})
            print(f"{seconds:7.2f} s {size or '':>10}  {file}", flush=True)

    measured = {result["file"]: result["seconds"] for result in results}
    if options.check and REFERENCE in measured:
        for file, multiple in BUDGETS.items():
            budget = multiple * measured[REFERENCE]
            if file not in measured:
                failures.append(f"{file}: has a budget of {budget:.2f} s, but was not measured")
            elif measured[file] > budget:
                failures.append(f"{file}: {measured[file]:.2f} s, the budget is {budget:.2f} s")
    if options.json:
        report = {
            "command": shlex.join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]]),
            "commit": git("rev-parse", "HEAD") + ("-dirty" if git("status", "--porcelain") else ""),
            "hardware": processor(),
            "results": results,
        }
        pathlib.Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
