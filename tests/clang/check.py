# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""check.py CLANG COMPILE_COMMANDS ROOT: lets clang check the sources for GPUs and several hosts, of the library and of the
programs, that another compiler was told to compile, with the same definitions and directories. No code is generated. The
other sources are compiled by clang for the sanitizers (tests/run.sh --sanitizers)."""

import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

KEPT = ("-D", "-I", "-isystem", "-std=", "-m")
COMPONENTS = ("cuda", "cudnn", "nccl", "mpi")  # how their sources' names begin


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
    clang, commands, root = sys.argv[1:]
    with open(commands, encoding="utf-8") as file:
        entries = json.load(file)
    sources = {}
    for entry in entries:
        path = os.path.relpath(entry["file"], root)
        # Of what CMake makes, implementations of a component.
        own = path.startswith("examples/core/") or os.path.basename(os.path.dirname(path)) == "superoffload"
        if path.endswith(".cpp") and own and os.path.basename(path).startswith(COMPONENTS):
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
    return 1 if failed or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
