#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Holds the pages' tables to the sources and results: facts.py [PROGRAMS]

* docs/troubleshooting.md has every exit code of core/error.hpp, as README.md does, and no other; its messages are in the
  sources.
* A row that ends with the name of a result file has the numbers of that file: README.md and docs/.
* With the programs: flags in the tables of the pages for users of other trainers are flags of finetune_llama.
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OTHER_TRAINERS = ("docs/tasks/from-deepspeed.md", "docs/tasks/from-trl-and-llama-factory.md")


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")


def cells(line):
    """The cells of a table's row; \\| is no border."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def rows(text):
    """(line number, header, cells) of every row of every table."""
    header = None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.startswith("|"):
            header = None
        elif header is None:
            header = cells(line)
        elif not set(line) <= set("|- :"):
            yield number, header, cells(line)


def exit_codes():
    declared = re.findall(r"^  \w+ = (\d+),", text_of("include/superoffload/core/error.hpp"), re.M)
    for page in ("docs/troubleshooting.md", "README.md"):
        said = [row[0] for _, header, row in rows(text_of(page)) if header[0] == "code"]
        if said != declared:
            yield f"{page}: exit codes {said}, expected those of core/error.hpp: {declared}"


def messages():
    sources = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "include").rglob("*.hpp")))
    sources = re.sub(r'"\s*\n\s*"', "", sources)
    for number, header, row in rows(text_of("docs/troubleshooting.md")):
        if header[0] != "message":
            continue
        for part in row[0].strip("`").split("..."):
            if part.strip() and part.strip() not in sources:
                yield f"docs/troubleshooting.md:{number}: no source says '{part.strip()}'"


# What a column's header says -> the numbers of a result, as text.
COLUMNS = {
    "tokens/s": lambda r: [f"{r['tokens_per_second']:,.0f}"],
    "model TFLOPS per GPU": lambda r: [f"{r['model_tflops']:,.0f}"],
    "GiB per GPU, on its host": lambda r: [f"{r['device_bytes'] / 2**30:.1f}", f"{r['host_bytes'] / 2**30:.1f}"],
    "step, planned": lambda r: [f"{r['step_time_ms'] / 1000:.2f} s", f"{r['planned_step_time_ms'] / 1000:.2f} s"],
    "GPUs": lambda r: [str(r["gpus"])],
}


def results():
    for path in ["README.md", *(p.relative_to(ROOT).as_posix() for p in sorted((ROOT / "docs").rglob("*.md")))]:
        for number, header, row in rows(text_of(path)):
            named = re.fullmatch(r"`(bench/results/\w[\w.-]*\.json)`", row[-1]) if header[-1] == "result" else None
            if not named:
                continue
            if not (ROOT / named[1]).is_file():
                yield f"{path}:{number}: {named[1]} does not exist"
                continue
            result = json.loads(text_of(named[1]))["results"]
            for column, cell in zip(header, row):
                if column in COLUMNS and cell != ", ".join(COLUMNS[column](result)):
                    yield f"{path}:{number}: {column} is {cell}, expected {', '.join(COLUMNS[column](result))} of {named[1]}"


def flags(programs):
    help_text = subprocess.run([programs / "finetune_llama", "--help"], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"--\w+", help_text))
    for path in OTHER_TRAINERS:
        for number, _, row in rows(text_of(path)):
            for flag in re.findall(r"`(--\w+)", row[-1]):
                if flag not in known:
                    yield f"{path}:{number}: {flag} is no flag of finetune_llama"


def main():
    wrong = [*exit_codes(), *messages(), *results()]
    if sys.argv[1:]:
        wrong += flags(pathlib.Path(sys.argv[1]))
    print("\n".join(wrong) or "exit codes, messages, results and flags are those of the sources")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
