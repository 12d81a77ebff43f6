#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Times steps beside their plans: shapes x placements x batches, 30 cells.
bench/train/plans.py [--programs DIR] [--steps N] [--seconds N] [--placements NAME ...]

Prints bench_train's JSON object of each cell, with its placement and `of_plan`, the measured share of the planned step time;
on standard error a table of these. --placements: these alone, in this order. No cell begins after so many seconds (3600). Of a
cell that does not fit the machine only the status is printed. To keep the results: bench/record.py gpu_plans bench/train/plans.py
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPES = (("llama-8b", 8), ("qwen3-14b", 4))  # and so many layers
PLACEMENTS = {
    "device": ("--offload", "none"),
    "host": ("--offload", "auto", "--ratio", "1", "--device_updated_share", "0", "--offload_weights", "off"),
    "mostly host": ("--offload", "auto", "--ratio", ".9", "--offload_weights", "off"),
    "host and device-updated": ("--offload", "auto", "--ratio", "1", "--device_updated_share", ".5",
                                "--offload_weights", "off"),
    "offloaded weights": ("--offload", "auto", "--offload_weights", "on"),
}
BATCHES = ((4, 2048, 1), (1, 2048, 1), (4, 2048, 4))  # sequences, their tokens, micro-batches
NEVER_CLIPPED = "1e9"  # plans assume that the check confirms every speculative update
CANNOT_FIT = 3  # exit status


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/bench/bin", help="directory of bench_train")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--placements", nargs="+", choices=PLACEMENTS, default=list(PLACEMENTS), metavar="NAME")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    for placement in options.placements:
        for shape, layers in SHAPES:
            for batch, length, accumulation in BATCHES:
                if time.monotonic() > end:
                    return
                # Some seconds, after which a GPU runs at its lasting speed.
                warm_up = max(4, 60 // (batch * accumulation) if placement == "device" else 0)
                cell = {"placement": placement, "shape": shape, "layers": layers, "batch": batch, "seq": length,
                        "accumulation": accumulation}
                program = subprocess.run(
                    [options.programs / "bench_train", "--device", options.device, "--shape", shape, "--layers", str(layers),
                     "--batch", str(batch), "--seq", str(length), "--accumulation", str(accumulation), "--warm_up", str(warm_up),
                     "--steps", str(options.steps), "--max_grad_norm", NEVER_CLIPPED, *PLACEMENTS[placement]],
                    stdout=subprocess.PIPE, text=True, check=False)
                if program.returncode == CANNOT_FIT:
                    print(json.dumps({**cell, "status": CANNOT_FIT}), flush=True)
                    continue
                if program.returncode != 0:
                    sys.exit(f"plans.py: bench_train ended with status {program.returncode}")
                measured = {**json.loads(program.stdout), **cell}
                measured["of_plan"] = round(measured["step_time_ms"] / measured["planned_step_time_ms"], 4)
                print(json.dumps(measured), flush=True)
                print(f"{placement:24} {shape:10} {batch} x {length} x {accumulation}  {measured['step_time_ms']:8.0f} ms, "
                      f"planned {measured['planned_step_time_ms']:8.0f}: {measured['of_plan']:.3f}", file=sys.stderr)


if __name__ == "__main__":
    main()
