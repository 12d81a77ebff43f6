# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Virtual environments with packages of PyPI, kept in ${XDG_CACHE_HOME:-~/.cache}/superoffload."""

import os
import pathlib
import shutil
import subprocess
import sys


def environment_with(package, versions, ready):
    """The directory of programs of an environment with `package`. It is made unless `ready`, a command in that directory,
    succeeds. Where it cannot be had, the test is skipped (exit status 77)."""
    root = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "superoffload" / package
    programs = root / "bin"
    command = [programs / ready[0], *ready[1:]]
    if not command[0].exists() or subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
        shutil.rmtree(root, ignore_errors=True)
        root.parent.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run([sys.executable, "-m", "venv", root], check=True, timeout=60, stdout=sys.stderr)
            subprocess.run([programs / "python", "-m", "pip", "install", "--quiet", package + versions], check=True, timeout=240,
                           stdout=sys.stderr)
        except (OSError, subprocess.SubprocessError) as reason:
            shutil.rmtree(root, ignore_errors=True)
            print(f"skipped: {package} could not be installed: {reason}")
            raise SystemExit(77)
    return programs
