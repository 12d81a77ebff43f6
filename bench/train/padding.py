#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Compares tokens per second with padding, without, and packed, on the quickstart's model and data:
bench/train/padding.py [--runs N] [--steps N]

Takes turns, and prints the median of each and the ratios to padding. After examples/quickstart.sh, which builds:
bench/record.py padding bench/train/padding.py
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = {"longest": ["--padding", "longest"], "none": [], "packed": ["--packing", "on"]}


def tokens_per_second(flags, steps):
    with tempfile.TemporaryDirectory() as directory:
        metrics = pathlib.Path(directory) / "metrics.jsonl"
        command = [ROOT / "build/release/bin/finetune_llama", "--model", ROOT / "examples/models/tiny_llama"]
        command += ["--dataset", ROOT / "examples/data/alpaca_en_demo.json", "--output_dir", directory]
        command += ["--metrics", metrics, "--max_length", "512", "--batch_size", "8", "--max_steps", str(steps)]
        subprocess.run(command + flags, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lines = [line for line in map(json.loads, metrics.read_text().splitlines()) if "step_time_ms" in line]
    return 1e3 * sum(line["tokens"] for line in lines) / sum(line["step_time_ms"] for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    arguments = parser.parse_args()
    runs = {case: [] for case in CASES}
    for _ in range(arguments.runs):
        for case, flags in CASES.items():
            runs[case].append(tokens_per_second(flags, arguments.steps))
    medians = {case: statistics.median(values) for case, values in runs.items()}
    ratios = {case: value / medians["longest"] for case, value in medians.items()}
    print(json.dumps({"tokens_per_second": runs, "median": medians, "ratio_to_padding": ratios}))


if __name__ == "__main__":
    main()
