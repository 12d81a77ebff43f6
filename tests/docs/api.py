#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Has doxygen read all public names (docs/Doxyfile). Every warning is an error, and so is a name without a comment.

The exit status is 1 for a warning, 77 without doxygen.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


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
    if sys.argv[1:]:
        sys.exit(__doc__)
    if not shutil.which("doxygen"):
        print("skipped: there is no doxygen")
        return 77
    warnings = warnings_of_doxygen()
    print("\n".join(warnings) or "every public name has a comment, and no other warning")
    return 1 if warnings else 0


if __name__ == "__main__":
    sys.exit(main())
