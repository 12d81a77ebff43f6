#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks that the launchers of other projects start: launchers.py FINETUNE MODEL DATASET

deepspeed, torchrun, accelerate and mpirun start two ranks of a fine-tuner, with the flags of DeepSpeed's SuperOffload example.
Losses must be those of --ranks 2, to the last bit. The launchers are those in PATH, or in the directory of programs that
SUPEROFFLOAD_LAUNCHERS names, or in ${XDG_CACHE_HOME:-~/.cache}/superoffload/launchers/bin. Nothing is installed: torch takes
gigabytes. This makes them, but for mpirun and numactl, which are packages of the system:

  python3 -m venv ~/.cache/superoffload/launchers
  DS_BUILD_OPS=0 ~/.cache/superoffload/launchers/bin/pip install torch deepspeed accelerate

Without any launcher the test is skipped (exit status 77).
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

finetune, model, dataset = sys.argv[1:]
cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "superoffload/launchers/bin"
environment = {name: value for name, value in os.environ.items() if name != "KMP_AFFINITY"}  # DeepSpeed refuses it
environment["PATH"] = os.pathsep.join([os.environ.get("SUPEROFFLOAD_LAUNCHERS", str(cache)), os.environ["PATH"]])


def has(program):
    return shutil.which(program, path=environment["PATH"]) is not None


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def losses(name, command, flags, variables={}):
    with tempfile.TemporaryDirectory() as output:
        metrics = pathlib.Path(output) / "metrics.jsonl"
        # All ranks have one --output_dir, and their launcher's variables tell who is who.
        done = subprocess.run([*command, *flags, "--output_dir", output, "--metrics", metrics], env={**environment, **variables},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        if done.returncode != 0:
            sys.exit(f"{name}: exit status {done.returncode}\n{done.stdout}")
        if "in 1 micro-batch on each of 2 ranks" not in done.stdout:
            sys.exit(f"{name}: not two ranks\n{done.stdout}")
        return [line["loss"] for line in map(json.loads, metrics.read_text().splitlines())]


def main():
    launchers = {}
    if has("deepspeed"):
        binding = ["--bind_cores_to_rank"] if has("numactl") else []
        launchers["deepspeed"] = ["deepspeed", "--no_python", "--num_gpus", "2", *binding, "--master_port", free_port(), finetune]
    if has("torchrun"):
        launchers["torchrun"] = ["torchrun", "--no-python", "--nproc-per-node", "2", "--master-port", free_port(), finetune]
    if has("accelerate"):
        # Without --multi_gpu it starts one process, whatever --num_processes says.
        launchers["accelerate"] = ["accelerate", "launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1",
                                   "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", free_port(),
                                   "--no_python", finetune]
    for mpirun in [name for name in ("mpirun.openmpi", "mpirun.mpich") if has(name)] or ["mpirun"]:
        if has(mpirun):
            version = subprocess.run([mpirun, "--version"], env=environment, capture_output=True, text=True).stdout
            is_open = "Open MPI" in version or "OpenRTE" in version
            launchers["Open MPI" if is_open else "MPICH"] = [
                mpirun, *(["--allow-run-as-root", "--oversubscribe"] if is_open else []), "-np", "2", finetune]
    if not launchers:
        print("skipped: no deepspeed, torchrun, accelerate or mpirun; see the head of", __file__)
        return 77

    with tempfile.TemporaryDirectory() as scratch:
        config = pathlib.Path(scratch) / "ds_config.json"
        config.write_text(json.dumps({
            "train_batch_size": 4, "gradient_accumulation_steps": 1, "bf16": {"enabled": True},
            "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.8, "super_offload": True}}}))
        flags = ["--model_name", model, "--deepspeed_config", str(config), "--dataset", dataset, "--batch_size", "4",
                 "--lr", "1e-3", "--template", "deepspeed", "--label_mask", "none", "--max_length", "64", "--bench_steps", "5",
                 "--activation_checkpointing", "--bind_cores_to_rank", "--device", "cpu"]
        expected = losses("--ranks 2", [finetune, "--ranks", "2"], flags)
        if len(expected) != 5 or not expected[-1] < expected[0]:
            sys.exit(f"--ranks 2: losses {expected}, expected five that fall")
        for name, command in launchers.items():
            own = losses(name, command, flags, {"SUPEROFFLOAD_JOB": f"launchers-{os.getpid()}"} if name == "MPICH" else {})
            if own != expected:
                sys.exit(f"{name}: losses {own}, expected {expected}")
    print("the same losses to the last bit:", ", ".join(launchers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
