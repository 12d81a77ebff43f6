#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""A long run of a small model: soak.py FINETUNE MODEL DATA [STEPS]

Trains for STEPS steps (2000), with checkpoints, rotations and evaluations, and looks at the process: memory, descriptors,
threads and files must not grow. Then the same in five pieces, each of which goes on from the last one: losses and weights
must be the same. Prints what was seen, and at the end one line of JSON; the exit status is 1 if a check fails.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

PIECES = 5
MIB = 2**20


def command(program, model, data, output, steps, all_steps):
    return [program, "--model", model, "--dataset", data, "--output_dir", output, "--max_steps", str(steps),
            "--dataset_percentage", "30", "--max_length", "16", "--batch_size", "1", "--lr", "1e-5", "--lr_scheduler",
            "constant", "--dtype", "bf16", "--label_mask", "none", "--log_interval", str(max(1, all_steps // 20)),
            "--save_steps", str(all_steps // 100), "--save_total_limit", "2", "--eval_dataset", data, "--eval_steps",
            str(all_steps // 20), "--metrics", output / "metrics.jsonl", "--resume", "auto", "--quiet"]


def look_at(process, output):
    """Resident bytes, descriptors, threads, and bytes of files that are no metrics; None: it has ended.

    The process is stopped meanwhile: no checkpoint is rotated away between two that are counted.
    """
    os.kill(process, signal.SIGSTOP)
    # The process stays one that Popen can wait for.
    if os.waitid(os.P_PID, process, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code != os.CLD_STOPPED:
        return None
    try:
        return counted(process, output)
    finally:
        os.kill(process, signal.SIGCONT)


def counted(process, output):
    place = pathlib.Path("/proc") / str(process)
    try:
        status = dict(line.split(":\t", 1) for line in (place / "status").read_text().splitlines() if ":\t" in line)
        resident, threads = int(status["VmRSS"].split()[0]) * 1024, int(status["Threads"])
        descriptors = len(os.listdir(place / "fd"))
    except (OSError, KeyError, ValueError):
        return None
    files = 0
    for directory, _, names in os.walk(output):
        for name in names:
            files += os.stat(os.path.join(directory, name)).st_size if name != "metrics.jsonl" else 0
    return resident, descriptors, threads, files


def train(arguments, output, samples):
    environment = {**os.environ, "SUPEROFFLOAD_NUM_THREADS": "1"}
    process = subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None:
        seen = look_at(process.pid, output)
        if seen:
            samples.append(seen)
        time.sleep(0.02)
    if process.returncode != 0:
        sys.exit(f"soak.py: status {process.returncode}: {process.stderr.read()}")


def losses_in(output):
    lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    return [(line["step"], line.get("loss"), line.get("eval_loss"), line.get("grad_norm")) for line in lines]


def flat(samples):
    """What grows from the second quarter of a run to its last one, by the least that was seen."""
    quarter = len(samples) // 4
    # What a save or an evaluation takes meanwhile is seen more often in one quarter than in the other.
    allowed = {"resident bytes": MIB, "descriptors": 2, "threads": 1, "bytes of files": 8192}
    wrong = []
    for i, (name, slack) in enumerate(allowed.items()):
        early = min(sample[i] for sample in samples[quarter : 2 * quarter])
        late = min(sample[i] for sample in samples[3 * quarter :])
        most = max(sample[i] for sample in samples)
        print(f"{name}: {early:,} in the second quarter, {late:,} in the last one, at most {most:,}")
        if late > early + slack:
            wrong.append(f"{name} grow from {early:,} to {late:,}")
    return wrong


def main(program, model, data, steps="2000"):
    steps = int(steps)
    with tempfile.TemporaryDirectory() as scratch:
        whole, pieces = pathlib.Path(scratch) / "whole", pathlib.Path(scratch) / "pieces"
        samples = []
        begin = time.monotonic()
        train(command(program, model, data, whole, steps, steps), whole, samples)
        print(f"{steps:,} steps in {time.monotonic() - begin:.0f} s, {len(samples)} looks at the process")
        wrong = flat(samples) if len(samples) >= 20 else ["too few looks at the process"]
        for piece in range(1, PIECES + 1):
            train(command(program, model, data, pieces, steps * piece // PIECES, steps), pieces, [])
        if losses_in(whole) != losses_in(pieces):
            wrong.append("the losses of the pieces differ")
        if (whole / "model/model.safetensors").read_bytes() != (pieces / "model/model.safetensors").read_bytes():
            wrong.append("the weights of the pieces differ")
        left = sorted(path.name for path in whole.iterdir())
        if len([name for name in left if name.startswith("checkpoint-")]) != 2 or any(n.startswith(".") for n in left):
            wrong.append(f"left: {', '.join(left)}")
    for what in wrong:
        print(f"soak.py: {what}")
    print(json.dumps({"fault": "soak", "tried": steps, "survived": 0 if wrong else steps}))
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    sys.exit(main(*map(pathlib.Path, sys.argv[1:4]), *sys.argv[4:]))
