#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Searches for inputs that break the parsers, with clang's libFuzzer.

fuzz.py [--seconds N] [--long] [--counted FILE]... [--jobs N] [--built] [TARGET...]

Builds the targets in build/fuzz under AddressSanitizer and UndefinedBehaviorSanitizer (--built: they are there), and lets
each run for N seconds (60), from the corpus of the tests and from what earlier runs found (build/fuzz/corpus). --long: each
runs the inputs of its aim instead, in parts, so many at once as there are jobs (as processors), for N seconds at most in all.
--counted: without those that this file of bench/results counts; it may be given more than once.
An input may take 10 seconds and 1 GiB.
Prints one line of JSON for each target: how many inputs it ran, and how many of them it survived. A run ends at the first
input that breaks a promise, which is kept in build/fuzz/found; then the exit status is 1.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

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

AIMS = dict.fromkeys(SEEDS, 10_000_000) | {
    "safetensors": 50_000_000,
    # What these compute takes longer than reading it.
    "regular_expression": 1_000_000,
    "chat": 1_000_000,
}
PARTS = 40  # processes that run the inputs of an aim
ASAN_OPTIONS = "detect_leaks=0:malloc_context_size=1:quarantine_size_mb=8"  # a quarter faster; a replay prints whole stacks


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


def fill_corpus(target):
    """Puts the seeds into the directory that the fuzzer reads and adds to."""
    corpus = BUILD / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    for place in [ROOT / "tests/fuzz/corpus" / target, *SEEDS[target]]:
        for file in sorted(place.iterdir()) if place.is_dir() else [place] if place.is_file() else []:
            name = f"{file.parent.name}-{file.name}"
            if not (corpus / name).exists():
                shutil.copy(file, corpus / name)


def search(target, seconds, inputs=-1, number=0):
    """Runs a target for so many seconds and inputs at most. Returns how many it ran and survived, and the edges it reached."""
    found = BUILD / "found" / target
    found.mkdir(parents=True, exist_ok=True)
    log = BUILD / f"{target}{number or ''}.log"
    command = [BUILD / "bin" / f"fuzz_{target}", BUILD / "corpus" / target, f"-max_total_time={seconds}", f"-runs={inputs}",
               "-timeout=10", "-rss_limit_mb=4096", "-malloc_limit_mb=1024", "-max_len=65536", "-print_final_stats=1",
               f"-artifact_prefix={found}/", f"-entropic={(number + 1) % 2}"]  # parts differ in how they choose what to change
    with log.open("w") as out:
        try:
            # The fuzzer looks at its time only after it has run the corpus, which may be large.
            status = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, timeout=seconds + 15,
                                    env={**os.environ, "ASAN_OPTIONS": ASAN_OPTIONS}).returncode
        except subprocess.TimeoutExpired:
            status = 0
    text = log.read_text(errors="replace")
    reported = re.findall(r"^(?:#|stat::number_of_executed_units: )(\d+)", text, re.MULTILINE)
    tried = int(reported[-1]) if reported else 0
    covered = re.findall(r"cov: (\d+)", text)
    broken = 0 if status == 0 else 1
    if broken:
        print(f"fuzz.py: {target} broke: {log}", file=sys.stderr)
    elif number:
        log.unlink()
    return tried, tried - broken, int(covered[-1]) if covered else 0


def search_long(inputs, seconds, jobs):
    """So many inputs of each target, in parts of which so many run at once as there are jobs. Returns for each target what its
    parts did."""
    end = time.monotonic() + seconds
    parts = []
    for target, all_inputs in inputs.items():
        part = AIMS[target] // PARTS
        sizes = [min(part, all_inputs - begin) for begin in range(0, all_inputs, part)]
        parts += [(number / len(sizes), target, size) for number, size in enumerate(sizes)]
    parts.sort()  # in turns: if the time is too short, it is for all of them
    results = {target: [] for target in inputs}

    def one(number, target, size):
        left = int(end - time.monotonic())
        if left > 0:
            results[target].append(search(target, left, size, number))

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waits = [pool.submit(one, number, target, size) for number, (_, target, size) in enumerate(parts, 1)]
    for wait, (_, target, _) in zip(waits, parts):
        if wait.exception():
            print(f"fuzz.py: a part of {target} did not run: {wait.exception()}", file=sys.stderr)
            results[target].append((1, 0, 0))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--counted", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--built", action="store_true")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    arguments = parser.parse_args()
    targets = arguments.targets or list(SEEDS)
    unknown = set(targets) - set(SEEDS)
    if unknown:
        parser.error(f"unknown targets: {', '.join(sorted(unknown))}; there are {', '.join(SEEDS)}")
    if not arguments.built:
        build(targets)
    good = True

    def say(target, runs, seconds):
        nonlocal good
        tried, survived = (sum(run[i] for run in runs) for i in (0, 1))
        good = good and tried == survived and (tried > 0 or arguments.long)  # a long search may have nothing left to run
        print(json.dumps({"fault": "F21", "target": target, "tried": tried, "survived": survived, "seconds": seconds,
                          "covered_edges": max((run[2] for run in runs), default=0)}), flush=True)

    for target in targets:
        fill_corpus(target)
        if not arguments.long:
            say(target, [search(target, arguments.seconds)], arguments.seconds)
    if arguments.long:
        inputs = {target: AIMS[target] for target in targets}
        for line in [line for file in arguments.counted for line in json.loads(file.read_text())["results"]]:
            if line["target"] in inputs:
                inputs[line["target"]] = max(0, inputs[line["target"]] - line["survived"])
        begin = time.monotonic()
        results = search_long(inputs, arguments.seconds, arguments.jobs)
        for target in targets:
            say(target, results[target], round(time.monotonic() - begin))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
