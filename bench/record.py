#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a benchmark and keeps what it printed: bench/record.py NAME [--] COMMAND...

COMMAND prints JSON: one document, or one a line. bench/results/NAME.json gets it with the command, the commit and the
machine. A program of Google Benchmark needs --benchmark_format=json.
"""

import json
import os
import pathlib
import platform
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def gpus():
    try:
        listed = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True
        )
    except FileNotFoundError:
        return []
    return listed.stdout.split("\n")[:-1] if listed.returncode == 0 else []


def commit():
    def git(*arguments):
        return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    return os.environ.get("SUPEROFFLOAD_COMMIT") or git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")


def parsed(text):
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def main():
    name, command = sys.argv[1], [a for a in sys.argv[2:] if a != "--"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        sys.exit(f"record.py: {command[0]} ended with status {done.returncode}; its output, above, was not kept")
    result = {
        "command": " ".join(os.path.relpath(a, ROOT) if os.path.isabs(a) else a for a in command),
        "commit": commit(),
        "hardware": {"processor": processor(), "cores": len(os.sched_getaffinity(0)), "gpus": gpus()},
        "results": parsed(done.stdout),
    }
    target = ROOT / "bench" / "results" / f"{name}.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(result, indent=1) + "\n")
    print(target.relative_to(ROOT))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main()
