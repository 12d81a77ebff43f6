#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Times steps of Llama-8B where activations or the GPU's memory are what is scarce:
bench/train/memory.py budgets|small|sums|sequences [--programs DIR] [--steps N] [--cases N]

budgets: inside a part of the GPU's memory. small: inside that of GPUs of 8 to 12 GiB, with int8 state. sums: the
same with 131,072 tokens a step, of which float32 state takes 143 GiB of the host. sequences: one long
sequence a step, in all of it. Every run clips at 1 and is planned for its machine. Prints bench_train's JSON object of each:
bench/record.py gpu_train_budgets bench/train/memory.py budgets
"""

import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# GiB of the device, sequences of a micro-batch, micro-batches, tokens of a sequence, optimizer state
CASES = {
    "budgets": ((24, 8, 8, 2048, "float32"), (24, 16, 1, 2048, "float32"), (18, 16, 1, 2048, "float32")),
    "small": ((7.5, 4, 1, 2048, "int8"), (9, 8, 1, 2048, "int8"), (11, 16, 1, 2048, "int8"), (9, 4, 16, 2048, "int8")),
    "sums": ((9, 8, 8, 2048, "int8"), (9, 8, 8, 2048, "float32")),
    "sequences": ((None, 1, 1, 1 << 15, "float32"), (None, 1, 1, 1 << 16, "float32"), (None, 1, 1, 1 << 17, "float32")),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=tuple(CASES))
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/bench/bin", help="directory of bench_train")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--cases", type=int, default=4, help="only the first N")
    options = parser.parse_args()
    for budget, batch, accumulation, length, state in CASES[options.what][:options.cases]:
        command = [options.programs / "bench_train", "--device", "cuda", "--shape", "llama-8b", "--offload", "auto", "--batch",
                   str(batch), "--accumulation", str(accumulation), "--seq", str(length), "--state", state,
                   "--warm_up", "1", "--steps", str(options.steps), *(("--device_memory", str(budget)) if budget else ())]
        program = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if program.returncode != 0:
            sys.exit(f"memory.py: bench_train ended with status {program.returncode}")
        print(program.stdout, end="", flush=True)


if __name__ == "__main__":
    main()
