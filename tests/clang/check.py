# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""check.py CLANG COMPILE_COMMANDS ROOT COMPONENT...: lets clang check the sources of these components, of the library and of
the programs, that another compiler was told to compile, with the same definitions and directories. No code is generated. The
other sources are compiled by clang for the sanitizers (tests/run.sh --sanitizers)."""

import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

KEPT = ("-D", "-I", "-isystem", "-std=", "-m")


def arguments_of(command):
    """The arguments of a command line that affect the front end."""
    words = shlex.split(command)
    kept = []
    for word, following in zip(words, words[1:] + [""]):
        if word in ("-isystem", "-I", "-D"):
            kept += [word, following]
        elif word.startswith(KEPT):
            kept.append(word)
    return kept


def main():
    clang, commands, root, *components = sys.argv[1:]
    with open(commands, encoding="utf-8") as file:
        entries = json.load(file)
    sources = {}
    for entry in entries:
        path = os.path.relpath(entry["file"], root)
        # Sources are named after their component. Those of the library are made by CMake.
        own = path.startswith("examples/core/") or os.path.basename(os.path.dirname(path)) == "superoffload"
        if path.endswith(".cpp") and own and os.path.basename(path).startswith(tuple(components)):
            sources.setdefault(entry["file"], (entry["directory"], arguments_of(entry["command"])))

    def check(source):
        directory, arguments = sources[source]
        return subprocess.run([clang, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *arguments, source],
                              cwd=directory, capture_output=True, text=True, check=False)

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, done in zip(sources, pool.map(check, sources)):
            if done.returncode != 0:
                failed += 1
                print(f"{clang} does not compile {source}:\n{done.stderr}")
    print(f"{clang}: {len(sources)} sources, {failed} of them do not compile")
    names = [os.path.basename(source) for source in sources]
    missing = [component for component in components if f"{component}.cpp" not in names]
    if missing:
        print(f"{commands}: no source of {', '.join(missing)}")
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
