#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Compares trainings in different formats, of the optimizer's state or of GEMMs: bench/train/state_formats.py
[--programs DIR] [--model DIR] [--steps N] [--rates R...] [--states S...] [--dtypes D...] [--flags FLAG...]

Every format trains on the same rows at every learning rate. Prints one JSON object a training: its loss as the mean of each
twentieth of the steps, the loss of the last tenth, the held-out loss at the end, and both as shares of those of the first
format. bench/record.py state_formats_tiny bench/train/state_formats.py, or
bench/record.py float8_tiny bench/train/state_formats.py --states float32 --dtypes bf16 fp8
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def losses_of(options, state, dtype, rate):
    """The training losses of each step, and the last held-out loss."""
    shutil.rmtree(options.scratch, ignore_errors=True)
    options.scratch.mkdir(parents=True)
    metrics = options.scratch / "metrics.jsonl"
    command = [options.programs / "finetune_llama", "--model", options.model, "--dataset", options.dataset, "--eval_dataset",
               options.eval_dataset, "--output_dir", options.scratch / "run", "--export", "off", "--metrics", metrics, "--dtype",
               dtype, "--max_steps", options.steps, "--eval_steps", options.steps, "--lr", rate, "--lr_scheduler", "constant",
               "--lr_warmup_steps", "10", "--state", state, *options.flags]
    program = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if program.returncode != 0:
        sys.exit(f"state_formats.py: finetune_llama ended with status {program.returncode}: {program.stderr[-300:]}")
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    training = [line["loss"] for line in lines if "loss" in line and "grad_norm" in line]
    return training, [line["eval_loss"] for line in lines if "eval_loss" in line][-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/bin", help="directory of finetune_llama")
    parser.add_argument("--scratch", type=pathlib.Path, default=pathlib.Path("/tmp/superoffload_state_formats"))
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "examples/models/tiny_llama")
    parser.add_argument("--dataset", type=pathlib.Path, default=ROOT / "examples/data/alpaca_en_demo.json")
    parser.add_argument("--eval_dataset", type=pathlib.Path, default=ROOT / "examples/data/alpaca_held_out.jsonl")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rates", type=float, nargs="+", default=[3e-4, 1e-3, 3e-3])
    parser.add_argument("--states", nargs="+", default=["float32", "bf16", "int8"], help="the first is what others are compared with")
    parser.add_argument("--dtypes", nargs="+", default=["bf16"], help="the same of --dtype")
    parser.add_argument("--flags", nargs=argparse.REMAINDER, default=["--max_length", "256"], help="further flags of finetune_llama")
    options = parser.parse_args()
    for rate in options.rates:
        exact = None
        for state, dtype in ((state, dtype) for state in options.states for dtype in options.dtypes):
            training, held_out = losses_of(options, state, dtype, rate)
            part = max(1, len(training) // 20)
            at_end = statistics.mean(training[-len(training) // 10:])
            exact = exact or (at_end, held_out)
            print(json.dumps({
                "state": state, "dtype": dtype, "lr": rate, "steps": len(training), "loss": round(at_end, 5), "held_out_loss": round(held_out, 5),
                "share_of_first": round(at_end / exact[0], 5), "held_out_share_of_first": round(held_out / exact[1], 5),
                "curve": [round(statistics.mean(training[i:i + part]), 4) for i in range(0, len(training), part)],
            }), flush=True)
    shutil.rmtree(options.scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
