#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the quickstart a few times, after its build, and prints the median of the runs: bench/train/quickstart.py [--runs N]

On an otherwise idle machine: bench/record.py quickstart bench/train/quickstart.py
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def one_run():
    with tempfile.TemporaryDirectory() as directory:
        metrics = pathlib.Path(directory) / "metrics.jsonl"
        command = [ROOT / "examples/quickstart.sh", "--metrics", metrics]
        begin = time.monotonic()
        subprocess.run(command, cwd=directory, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds = time.monotonic() - begin
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    steps = [line for line in lines if "step_time_ms" in line]
    losses = [line["eval_loss"] for line in lines if "eval_loss" in line]
    return {
        "steps": len(steps),
        "tokens_per_second_median_step": statistics.median(s["tokens_per_second"] for s in steps),
        "tokens_per_second_whole": 1e3 * sum(s["tokens"] for s in steps) / sum(s["step_time_ms"] for s in steps),
        "model_tflops_median_step": statistics.median(s["model_tflops"] for s in steps),
        "held_out_loss_before": losses[0],
        "held_out_loss_after": losses[-1],
        "seconds": seconds,
    }


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--runs", type=int, default=3)
    one_run()  # which may have to build
    runs = [one_run() for _ in range(arguments.parse_args().runs)]
    print(json.dumps({"runs": len(runs)} | {name: statistics.median(r[name] for r in runs) for name in runs[0]}))


if __name__ == "__main__":
    main()
