#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""How often clipping fires when a small model is fine-tuned: bench/train/clipping.py [--program FILE] [--epochs X]

Fine-tunes the bundled Llama checkpoint on the bundled instructions, as examples/quickstart.sh does, with several
learning rates and batch sizes, and reads the norms of the gradients from the runs' metrics. One line of JSON a run:
the share of the steps whose clip factor is below 1, over all and after the first tenth, and the norms' distribution.
Keep them with bench/record.py clipping_tiny_cpu bench/train/clipping.py
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAX_NORM = 1.0
RATES = [1e-5, 2e-4, 2e-3]
BATCHES = [4, 16, 64]


def norms_of(program, rate, batch, epochs):
    with tempfile.TemporaryDirectory() as output:
        metrics = pathlib.Path(output) / "metrics.jsonl"
        command = [program, "--device", "cpu", "--model", ROOT / "examples/models/tiny_llama"]
        command += ["--dataset", ROOT / "examples/data/alpaca_en_demo.json", "--dataset_percentage", "90"]
        command += ["--output_dir", output, "--max_length", "512", "--lr_scheduler", "cosine", "--lr_warmup_steps", "5"]
        command += ["--num_train_epochs", epochs, "--batch_size", batch, "--lr", rate, "--max_grad_norm", MAX_NORM]
        command += ["--metrics", metrics]
        done = subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"clipping.py: the run ended with status {done.returncode}: {done.stderr}")
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return [line["grad_norm"] for line in lines if "grad_norm" in line], [line["loss"] for line in lines if "loss" in line]


def share_clipped(norms):
    return round(sum(norm + 1e-6 > MAX_NORM for norm in norms) / len(norms), 4)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--program", default=ROOT / "build/release/bin/finetune_llama")
    arguments.add_argument("--epochs", type=float, default=1.0)
    chosen = arguments.parse_args()
    for batch in BATCHES:
        for rate in RATES:
            norms, losses = norms_of(chosen.program, rate, batch, chosen.epochs)
            ordered = sorted(norms)
            quantile = lambda share: round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 4)
            print(
                json.dumps(
                    {
                        "batch_size": batch,
                        "lr": rate,
                        "max_grad_norm": MAX_NORM,
                        "steps": len(norms),
                        "clipped": share_clipped(norms),
                        "clipped_after_a_tenth": share_clipped(norms[len(norms) // 10 :]),
                        "norm_least": quantile(0.0),
                        "norm_median": quantile(0.5),
                        "norm_p95": quantile(0.95),
                        "norm_most": ordered[-1],
                        "loss_first": losses[0],
                        "loss_last": losses[-1],
                    }
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
