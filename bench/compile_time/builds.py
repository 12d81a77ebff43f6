#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Wall-clock seconds of builds for the CPU from nothing, without a compiler cache: bench/compile_time/builds.py [--jobs N]

The CPU kernels of every instruction set; all fine-tuners and tokenize. Prints one JSON object a build.
bench/record.py build_time bench/compile_time/builds.py
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# In seconds on 2 cores.
BUDGETS = {"kernels": 60, "fine-tuners": 150}


def targets(build, name):
    listed = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], capture_output=True, text=True, check=True).stdout
    rules = dict(line.split(": ", 1) for line in listed.splitlines() if ": " in line)
    if name == "kernels":
        return [file for file in rules if "kernels_" in file and file.endswith(".o")]
    return [file for file in rules if file.startswith(("bin/finetune", "bin/tokenize"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    for name, budget in BUDGETS.items():
        with tempfile.TemporaryDirectory() as build:
            configure = ["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-D", "CMAKE_BUILD_TYPE=Release", "-D",
                         "SUPEROFFLOAD_CUDA=OFF", "-D", "SUPEROFFLOAD_BUILD_TESTS=OFF"]
            done = subprocess.run(configure, capture_output=True, text=True, env={**os.environ, "CCACHE_DISABLE": "1"})
            if done.returncode != 0:
                sys.exit(done.stderr)
            wanted = targets(build, name)
            if not wanted:
                sys.exit(f"builds.py: nothing to build for {name}")
            begin = time.monotonic()
            subprocess.run(["ninja", "-C", build, "-j", str(options.jobs), *wanted], stdout=subprocess.DEVNULL, check=True,
                           env={**os.environ, "CCACHE_DISABLE": "1"})
            print(json.dumps({"build": name, "jobs": options.jobs, "files": len(wanted),
                              "seconds": round(time.monotonic() - begin, 1), "budget_s": budget}), flush=True)


if __name__ == "__main__":
    main()
