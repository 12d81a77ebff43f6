#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Checks what the compiler does not: check.py [ROOT]

Includes go downward only, heavy third-party headers stay out of public headers, every source names its licence,
nothing refers to a place outside the project, and README's build without CMake has all sources. Prints one line per violation; the exit status is 1 if there was any.
"""

import pathlib
import re
import subprocess
import sys

# Directory under include/superoffload -> the directories it may include besides itself.
ALLOWED = {
    "core": "",
    "kernel": "core",
    "cpu": "core kernel",
    "cuda": "core kernel",
    "cudnn": "core kernel cuda",
    "comm": "core kernel",
    "nccl": "core kernel cuda comm",
    "io": "core",
    "text": "core io",
    "data": "core io text",
    "autograd": "core kernel",
    "optim": "core kernel",
    "zero": "core kernel autograd comm",
    "offload": "core kernel cpu autograd optim zero",
    "nn": "core kernel autograd",
    "model": "core kernel autograd nn io",
    "train": "core kernel cpu comm io text data autograd optim zero offload nn model",
}
# Components that only machines with the toolkit have.
ON_REQUEST = {"cuda", "cudnn", "nccl"}
HEAVY = re.compile(r"^(nlohmann/|CLI/|Eigen/|unsupported/Eigen/|xsimd/|utf8proc|cudnn|nccl)")
# The headers whose purpose is a heavy one, and the bodies of kernels: for sources and programs, not for other headers.
HEAVY_HEADERS = re.compile(r"^superoffload/(io/json\.hpp|cpu/(simd\.hpp|kernels_\w+\.hpp|kernels?/.*|\w+_kernels?\.hpp))$")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
SPDX = ("SPDX-FileCopyrightText:", "SPDX-License-Identifier: Apache-2.0")
SOURCES = {".hpp", ".cpp", ".cmake", ".py", ".sh", ".in"}
# Spelt in pieces, so that this file does not contain what it looks for.
OUTSIDE = re.compile((r"\.\./" + "shared|/" + r"work/").encode())


def files(root):
    """Tracked and new files, as paths relative to root; all files where git or its repository is missing."""
    try:
        git = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                             capture_output=True, check=True)
        names = [pathlib.PurePath(name) for name in git.stdout.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = [path.relative_to(root) for path in root.rglob("*")]
        names = [name for name in names if name.parts[0] not in {"build", ".git", ".cache"}]
    return sorted(name for name in set(names) if (root / name).is_file())


def check_includes(name, text):
    """name: path under include/, as an include directive writes it."""
    module = name.parts[1] if len(name.parts) > 2 else None
    if module is not None and module not in ALLOWED:
        yield 1, f"directory '{module}' has no entry in the table of allowed includes"
        return
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        bracket, target = match.groups()
        if bracket == '"':
            yield line, f'#include "{target}": expected <superoffload/...>'
            continue
        parts = target.split("/")
        if parts[0] == "superoffload" and module is not None:
            if len(parts) == 2 and name.name != parts[1]:
                yield line, f"includes the umbrella <{target}>: name the header itself"
            elif len(parts) > 2 and parts[1] != module and parts[1] not in ALLOWED[module].split():
                yield line, f"{module} includes <{target}>: it may include {ALLOWED[module] or 'nothing'} only"
        if name.suffix == ".hpp" and not HEAVY_HEADERS.match(name.as_posix()):
            if HEAVY.match(target) or HEAVY_HEADERS.match(target):
                yield line, f"a public header includes the heavy <{target}>: move the code that needs it to a .cpp"


def check_readme(text, names):
    match = re.search(r"include/superoffload/\{([a-z,]+)\}/\*\.cpp", text)
    if match is None:
        return
    there = {name.parts[2] for name in names
             if name.parts[:2] == ("include", "superoffload") and len(name.parts) == 4 and name.suffix == ".cpp"}
    for missing in sorted(there - ON_REQUEST - set(match[1].split(","))):
        yield text.count("\n", 0, match.start()) + 1, f"the sources of {missing} are left out"


def check(root):
    names = files(root)
    for name in names:
        content = (root / name).read_bytes()
        for match in OUTSIDE.finditer(content):
            yield name, content.count(b"\n", 0, match.start()) + 1, f"refers to {match.group().decode()}"
        if name.as_posix() == "README.md":
            for line, message in check_readme(content.decode("utf-8", errors="replace"), names):
                yield name, line, message
        if name.suffix in SOURCES:
            text = content.decode("utf-8", errors="replace")
            head = "\n".join(text.split("\n")[:4])
            if not all(line in head for line in SPDX):
                yield name, 1, "expected the two SPDX lines at the top"
            if name.parts[0] == "include" and name.suffix in {".hpp", ".cpp"}:
                for line, message in check_includes(name.relative_to("include"), text):
                    yield name, line, message
                if name.suffix == ".hpp" and "#pragma once" not in text:
                    yield name, 1, "expected #pragma once"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    violations = [f"{name}:{line}: {message}" for name, line, message in check(root)]
    print("\n".join(violations) or "includes, licences and references: no violation")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
