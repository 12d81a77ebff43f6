#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the event files of a run with the package tensorboard: event_files.py FINETUNE MODEL DATASET

The run is resumed from a checkpoint in its middle, so that the first file has steps that the second has, too. Every scalar
must have the value of the metrics, at every step once. The package is that of PyPI, in a virtual environment that is
kept in ${XDG_CACHE_HOME:-~/.cache}/superoffload; where it cannot be had, the test is skipped (exit status 77).
"""

import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

from environment import environment_with

OF_METRICS = {"train/loss": "loss", "train/grad_norm": "grad_norm", "train/learning_rate": "lr", "train/epoch": "epoch",
              "speed/step_time_ms": "step_time_ms", "speed/tokens_per_second": "tokens_per_second",
              "speed/model_tflops": "model_tflops", "speed/hardware_tflops": "hardware_tflops",
              "memory/host_peak_bytes": "host_bytes", "memory/device_peak_bytes": "device_bytes",
              "speculation/hit_rate": "hit_rate"}


def train(program, model, dataset, output, *more):
    subprocess.run([program, "--model", model, "--dataset", dataset, "--eval_dataset", dataset, "--dataset_percentage", "30",
                    "--output_dir", output, "--device", "cpu", "--max_length", "64", "--batch_size", "2", "--label_mask", "none", "--ratio", "0.5",
                    "--max_steps", "6", "--save_steps", "2", "--eval_steps", "2", "--lr_scheduler", "constant",
                    "--report_to", "tensorboard,jsonl", *more],
                   check=True, stdout=subprocess.DEVNULL, timeout=100)


def read(directory):
    """In the environment: the scalars and texts of the files, as JSON on standard output."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util import tensor_util
    files = EventAccumulator(directory, size_guidance={"scalars": 0, "tensors": 0})
    files.Reload()
    scalars = {tag: [(e.step, e.value) for e in files.Scalars(tag)] for tag in files.Tags()["scalars"]}
    texts = {tag: [tensor_util.make_ndarray(e.tensor_proto).tolist()[0].decode() for e in files.Tensors(tag)]
             for tag in files.Tags()["tensors"]}
    json.dump({"scalars": scalars, "texts": texts}, sys.stdout)


def float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def main(program, model, dataset):
    python = environment_with("tensorboard", ">=2.20,<3",
                              ["python", "-c", "import tensorboard.backend.event_processing.event_accumulator"]) / "python"
    with tempfile.TemporaryDirectory() as directory:
        output = pathlib.Path(directory)
        train(program, model, dataset, output)
        shutil.rmtree(output / "checkpoint-6")
        train(program, model, dataset, output, "--resume", "auto")
        reports = output / "reports"
        files = list((reports / "tensorboard").iterdir())
        assert len(files) == 2, files
        seen = json.loads(subprocess.run([python, __file__, "--read", reports / "tensorboard"], check=True, timeout=100,
                                         stdout=subprocess.PIPE).stdout)
        lines = [json.loads(line) for line in (reports / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "loss" in line]
    evaluations = [line for line in lines if "eval_loss" in line]
    assert [line["step"] for line in steps] == [1, 2, 3, 4, 5, 6], steps
    scalars = seen["scalars"]
    for tag, name in OF_METRICS.items():
        expected = [[line["step"], float32(line[name])] for line in steps]
        assert scalars[tag] == expected, f"{tag}: {scalars[tag]}, expected {expected}"
    assert scalars["eval/loss"][-1] == [6, float32(evaluations[-1]["eval_loss"])], scalars["eval/loss"]
    assert [step for step, _ in scalars["speed/mfu"]] == [1, 2, 3, 4, 5, 6] and scalars["speed/mfu"][0][1] > 0
    assert scalars["memory_plan/device/weights"][0][1] > 0 and scalars["memory_plan/host/optimizer_state"][0][1] > 0
    assert f"| --batch\\_size | 2 |" in seen["texts"]["settings"][-1], seen["texts"]["settings"]
    assert "optimizer state" in seen["texts"]["plan"][-1] and "device" in seen["texts"]["machine"][-1]
    print(f"tensorboard read {len(scalars)} scalars and {len(seen['texts'])} texts of {len(files)} files")


if __name__ == "__main__":
    if sys.argv[1] == "--read":
        read(sys.argv[2])
    else:
        main(*sys.argv[1:])
