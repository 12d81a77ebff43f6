#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Compares the rates at which finetune_llama writes a checkpoint and an exported model with the rates of the disk:
bench/train/storage.py [--programs DIR] [--scratch DIR] [--layers N] [--device D]

The model is the first layers of a published shape, with random weights. With the state in each format it trains for two steps,
saves a checkpoint and exports itself. `bytes` of a checkpoint, and its rate, are those of its state in float32; `on_disk` are
those of its files. Then dd copies the exported weights to a file of the same directory, with and without the page cache, and
waits until they are on the disk. Prints one JSON object a measurement: bench/record.py gpu_storage bench/train/storage.py
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

from real_rows import BUNDLED, ROOT, write_model

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
WRITTEN = re.compile(r"(exporting|writing the checkpoint): ([0-9.]+) (KiB|MiB|GiB) in ([0-9.]+) s")


def print_rate(run, size, seconds, **more):
    rate = round(1e-9 * size / seconds, 2)
    print(json.dumps({"run": run, **more, "bytes": round(size), "seconds": round(seconds, 2), "gb_per_s": rate}), flush=True)


def train(options, state):
    """One run: prints what it wrote, at which rate. Returns its output directory."""
    output = options.scratch / "output"
    shutil.rmtree(output, ignore_errors=True)
    program = subprocess.run([options.programs / "finetune_llama", "--model", options.scratch / "model", "--dataset", BUNDLED,
                              "--max_length", "256", "--batch_size", "4", "--max_steps", "2", "--save_checkpoint", "--device",
                              options.device, "--state", state, "--output_dir", output],
                             capture_output=True, text=True, check=False)
    said = program.stdout + program.stderr
    if program.returncode != 0:
        sys.exit(f"storage.py: finetune_llama ended with status {program.returncode}: {said[-300:]}")
    for what, size, unit, seconds in WRITTEN.findall(said):
        size = float(size) * UNITS[unit]
        if what == "exporting":
            print_rate(what, size, float(seconds), state=state)
        else:
            files = sum(file.stat().st_size for file in (output / "checkpoint-2").iterdir())
            print_rate(what, size, float(seconds), state=state, on_disk=files)
    return output


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/bench/bin", help="directory of finetune_llama")
    parser.add_argument("--scratch", type=pathlib.Path, default=pathlib.Path("/tmp/superoffload_storage"),
                        help="directory on the disk to measure; it is emptied at the end")
    parser.add_argument("--shape", default="llama-8b", help="a Llama of tests/data/configs")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    shutil.rmtree(options.scratch, ignore_errors=True)
    config = json.loads((ROOT / "tests/data/configs" / options.shape / "config.json").read_text())
    write_model(options.scratch / "model", config | {"num_hidden_layers": options.layers})
    for state in ("float32", "bf16", "int8"):
        output = train(options, state)
    for run, cache in (("dd, without the page cache", ["oflag=direct"]), ("dd, by the page cache", [])):
        size, seconds = 0, 0.0
        for file in sorted((output / "model").glob("*.safetensors")):
            whole = file.stat().st_size >> 24  # direct writes are of whole blocks
            begin = time.monotonic()
            subprocess.run(["dd", f"if={file}", f"of={options.scratch / 'copy'}", "bs=16M", f"count={whole}", "iflag=fullblock",
                            "conv=fsync", *cache], check=True, capture_output=True)
            seconds += time.monotonic() - begin
            size += whole << 24
        print_rate(run, size, seconds)
    shutil.rmtree(options.scratch)


if __name__ == "__main__":
    main()
