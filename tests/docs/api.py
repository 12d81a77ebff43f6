#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Judges doxygen's warnings about the public names (docs/Doxyfile): api.py [--list | --count]

Every warning is an error. Names without a comment are counted by directory instead: tests/docs/undocumented.json has the most
that there may be, and its numbers only fall. --list prints these names, --count
their numbers as in that file.

The exit status is 1 for a warning or for more names without a comment; 77 without doxygen.
"""

import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUDGET = ROOT / "tests/docs/undocumented.json"
# file:line: warning: Member x (variable) of class y is not documented.
UNDOCUMENTED = re.compile(r"include/superoffload/([\w./]+):\d+: warning: .* is not documented\.$")


def warnings_of_doxygen():
    with tempfile.TemporaryDirectory() as scratch:
        log = pathlib.Path(scratch) / "warnings"
        settings = (ROOT / "docs/Doxyfile").read_text(encoding="utf-8")
        settings += f"\nOUTPUT_DIRECTORY = {scratch}\nWARN_LOGFILE = {log}\nGENERATE_HTML = NO\nGENERATE_XML = YES\n"
        settings += "XML_PROGRAMLISTING = NO\n"
        done = subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            sys.exit(f"doxygen ended with status {done.returncode}")
        written = log.read_text(encoding="utf-8")
    # A warning's further lines are indented, or begin with no file.
    return sorted(set(re.split(r"\n(?=/)", written.strip()))) if written.strip() else []


def main():
    if sys.argv[1:] not in ([], ["--list"], ["--count"]):
        sys.exit(__doc__)
    if not shutil.which("doxygen"):
        print("skipped: there is no doxygen")
        return 77
    counted, wrong, listed = collections.Counter(), [], []
    for warning in warnings_of_doxygen():
        if undocumented := UNDOCUMENTED.search(warning):
            path = undocumented[1]
            counted[path.split("/")[0] if "/" in path else "(top)"] += 1
            listed.append(warning)
        else:
            wrong.append(warning)
    if sys.argv[1:]:
        print("\n".join(listed) if sys.argv[1] == "--list" else json.dumps(counted, indent=1, sort_keys=True))
        return 0
    budget = json.loads(BUDGET.read_text(encoding="utf-8"))
    for directory in sorted(counted.keys() | budget.keys()):
        found, most = counted[directory], budget.get(directory, 0)
        if found > most:
            wrong.append(f"{directory}: {found} names without a comment, expected {most} at most; --list prints them")
        elif found < most:
            print(f"{directory}: {found} names without a comment: lower its number in {BUDGET.relative_to(ROOT)} to that")
    print("\n".join(wrong) or f"{counted.total()} public names without a comment, no other warning")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
