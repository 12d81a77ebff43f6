#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Checks that code for one instruction set cannot run on a processor without it: kernel_symbols.py NM ARCHIVE

The linker keeps one copy of an inline function, whichever object it comes from. So every weak symbol in the object of
kernels_<set>.cpp, as CMake makes it, must bear the name of the set; else a std::vector that was compiled with AVX-512
serves all. Nor may the object initialize anything when the program starts, before a set is chosen.
"""

import re
import subprocess
import sys

MEMBER = re.compile(r"kernels_([a-z0-9_]+)\.cpp\.o(bj)?:$")
WEAK = re.compile(r"^[0-9a-fA-F]+ [VWu] (.*)$")


def main():
    nm, archive = sys.argv[1:]
    symbols = subprocess.run([nm, "-C", archive], capture_output=True, text=True, check=True).stdout
    current, seen, strays = None, set(), []
    for line in symbols.splitlines():
        if line.endswith(":"):
            member = MEMBER.search(line)
            current = member.group(1) if member else None
            seen.add(current)
        elif current not in (None, "scalar") and "_GLOBAL__sub_I" in line:
            strays.append(f"kernels_{current}.cpp: code that runs when the program starts")
        elif current and (weak := WEAK.match(line)):
            name = weak.group(1)
            named = f"cpu::{current}::" in name or f"eigen_{current}::" in name
            # The scalar set has the flags of everything else, so its copies do no harm.
            if not named and current != "scalar" and not name.startswith("DW.ref."):
                strays.append(f"kernels_{current}.cpp: {name}")
    seen.discard(None)
    if not seen:
        strays.append(f"{archive}: no kernels in it")
    print("\n".join(strays) or f"kernels of {', '.join(sorted(seen))}: every weak symbol bears the name of its set, and none runs at the start")
    return 1 if strays else 0


if __name__ == "__main__":
    sys.exit(main())
