#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Searches for inputs that break the parsers, with clang's libFuzzer: fuzz.py [--seconds N] [TARGET...]

Builds the targets in build/fuzz under AddressSanitizer and UndefinedBehaviorSanitizer, and lets each run for N seconds
(60), from the corpus of the tests and from what earlier runs found (build/fuzz/corpus). An input may take 10 seconds and
1 GiB.
Prints one line of JSON for each target: how many inputs it ran, and how many of them it survived. A run ends at the first
input that breaks a promise, which is kept in build/fuzz/found; then the exit status is 1.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/fuzz"
MALFORMED = ROOT / "tests/data/malformed"
# Beside tests/fuzz/corpus/TARGET; as tests/fuzz/CMakeLists.txt has them.
SEEDS = {
    "safetensors": [MALFORMED / "safetensors"],
    "index": [MALFORMED / "index"],
    "manifest": [MALFORMED / "checkpoint"],
    "json": [MALFORMED / "index", MALFORMED / "checkpoint"],
    "deepspeed": [ROOT / "tests/data/deepspeed"],
    "config": sorted((ROOT / "tests/data/configs").glob("*/config.json")),
    "tokenizer": [],
    "regular_expression": [],
    "chat": [],
    "rows": [MALFORMED / "dataset"],
    "machine": sorted((ROOT / "bench/hardware").glob("*.json")),
    "segment": [],
}


def build(targets):
    launcher = ["-D", "CMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    quiet = {"stdout": sys.stderr, "check": True, "cwd": ROOT}
    subprocess.run(
        ["cmake", "--preset", "asan", "-B", BUILD, "-D", "CMAKE_CXX_COMPILER=clang++", "-D", "SUPEROFFLOAD_FUZZ=ON",
         "-D", "CMAKE_CXX_FLAGS=-O1 -g1 -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all",
         "-D", "SUPEROFFLOAD_CUDA=OFF", "--log-level=WARNING", *launcher],
        **quiet,
    )
    subprocess.run(["cmake", "--build", BUILD, "--target", *(f"fuzz_{t}" for t in targets)], **quiet)


def corpus_of(target):
    """The directory that the fuzzer reads and adds to, with the seeds in it."""
    corpus = BUILD / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    for place in [ROOT / "tests/fuzz/corpus" / target, *SEEDS[target]]:
        for file in sorted(place.iterdir()) if place.is_dir() else [place] if place.is_file() else []:
            name = f"{file.parent.name}-{file.name}"
            if not (corpus / name).exists():
                shutil.copy(file, corpus / name)
    return corpus


def search(target, seconds):
    found = BUILD / "found" / target
    found.mkdir(parents=True, exist_ok=True)
    log = BUILD / f"{target}.log"
    with log.open("w") as out:
        done = subprocess.run(
            [BUILD / "bin" / f"fuzz_{target}", corpus_of(target), f"-max_total_time={seconds}", "-timeout=10",
             "-rss_limit_mb=4096", "-malloc_limit_mb=1024", "-max_len=65536", "-print_final_stats=1",
             f"-artifact_prefix={found}/"],
            stdout=out, stderr=subprocess.STDOUT, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"},
        )
    text = log.read_text(errors="replace")
    executed = re.search(r"number_of_executed_units: (\d+)", text)
    tried = int(executed[1]) if executed else 0
    covered = re.findall(r"cov: (\d+)", text)
    broken = 0 if done.returncode == 0 else 1
    if broken:
        print(f"fuzz.py: {target} broke: {log}", file=sys.stderr)
    return {"fault": "F21", "target": target, "tried": tried, "survived": tried - broken, "seconds": seconds,
            "covered_edges": int(covered[-1]) if covered else 0}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    arguments = parser.parse_args()
    targets = arguments.targets or list(SEEDS)
    unknown = set(targets) - set(SEEDS)
    if unknown:
        parser.error(f"unknown targets: {', '.join(sorted(unknown))}; there are {', '.join(SEEDS)}")
    build(targets)
    results = []
    for target in targets:
        results.append(search(target, arguments.seconds))
        print(json.dumps(results[-1]), flush=True)
    return 0 if all(r["tried"] == r["survived"] and r["tried"] > 0 for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
