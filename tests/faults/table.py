#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Injects faults and prints a table of what is survived.

table.py [--build DIR] [--long] [--json] [--jobs N] [--only F1,F3...] | --check | --page

Runs the tests that inject faults, from a build with the preset `test` (build/release), and counts. --long takes the long
counts (hours), and breaks the sources (mutants.py). --json prints the result as bench/record.py keeps it; the table goes to
standard error then. --check only sees that each test exists. --page writes the table of bench/results/faults.json into
docs/reliability.md. Exit status: 0 if all faults are survived and happened, 1 if not.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULT = ROOT / "bench/results/faults.json"
FUZZ = ROOT / "bench/results/fuzz.json"
PAGE = ROOT / "docs/reliability.md"
BEGIN, END = "<!-- faults.json: begin -->\n", "<!-- faults.json: end -->\n"


class Fault(NamedTuple):
    name: str
    what: str
    promises: str
    aim: int  # how many a long run has at least; 0: no such number


FAULTS = [
    Fault("F1", "a call on a file fails once or for good, with each errno that it may have; 1 and 2 ranks", "P2 P3", 2000),
    Fault("F2", "killed before or after a call on a file; 1 and 2 ranks", "P1 P2", 900),
    Fault("F3", "power loss: a state of the disk, from the record of a run", "P1 P3", 10_000),
    Fault("F4", "a protection left out of the sources; survived: a test fails", "P1 to P8", 10),
    Fault("F5", "limit of file size or descriptors, full disk", "P2 P8", 200),
    Fault("F6", "SIGKILL of the program at any time; the end is the same bit for bit", "P1 P4", 1000),
    Fault("F7", "a changed, cut, exchanged or missing byte, file or part of a checkpoint", "P3", 5000),
    Fault("F8", "an allocation fails, of host or device memory", "P8", 2000),
    Fault("F10", "a number that is not finite in a gradient", "P6", 0),
    Fault("F11", "a master split into the working weight and 16 bits, and put together again", "P6", 100_000_000),
    Fault("F12", "a step of exact speculation with clipped and skipped ones, beside the simple path", "P6", 1000),
    Fault("F13", "interrupted after each of 20 steps; 1, 2 and 4 ranks", "P4", 120),
    Fault("F14", "state from 1, 2 or 4 ranks to 1, 2 or 4, and from 1 to 4, 2, 1", "P5", 180),
    Fault("F16", "a rank is killed, ends, throws, stops or hangs", "P7", 840),
    Fault("F18", "SIGTERM, SIGINT or SIGHUP at any time", "P1 P4", 100),
    Fault("F21", "an input of a fuzzer", "P8", 0),
    Fault("F22", "a malformed file, refused by name and field", "P8", 0),
    Fault("hosts", "of two hosts a rank is killed or stopped, or gets SIGTERM, or a cable is out", "P1 P4 P7", 60),
    Fault("soak", "a step of one long run: memory, descriptors, threads and files stay; the same in pieces", "P4", 100_000),
]


class Run(NamedTuple):
    program: str
    test: str  # a filter of doctest
    faults: str


RUNS = [
    Run("io_tests", "--source-file=*train_checkpoint_test.cpp,*hub_export_test.cpp,*malformed_test.cpp", "F1 F2 F7 F22"),
    Run("faults_tests", "-tc=a call on a file that fails*", "F1"),
    Run("faults_tests", "-tc=a program that is killed before*", "F2"),
    Run("faults_tests", "--source-file=*crash_states_test.cpp", "F3"),
    Run("faults_tests", "--source-file=*limits_test.cpp", "F5"),
    Run("examples_tests", "-tc=kill -9 at any moment*", "F6"),
    Run("faults_tests", "--source-file=*allocations_test.cpp", "F8"),
    Run("train_tests", "--source-file=*scarce_memory_test.cpp", "F8"),
    Run("offload_tests", "--source-file=*none_test.cpp", "F10"),
    Run("cpu_tests", "-tc=a split master comes back: every low half*", "F11"),
    Run("offload_tests", "--source-file=*super_test.cpp", "F12"),
    Run("train_tests", "--source-file=*/resume_test.cpp", "F13 F14"),
    Run("train_tests", "--source-file=*rank_faults_test.cpp", "F16"),
    Run("comm_tests", "--source-file=*comm/faults_test.cpp", "F16"),
    Run("examples_tests", "-tc=the end of a rank in mid-run*", "F16"),
    Run("faults_tests", "--source-file=*signals_test.cpp", "F18"),
    Run("data_tests", "--source-file=*instructions_test.cpp", "F22"),
    Run("text_tests", "--source-file=*tokenizer_files_test.cpp", "F22"),
    Run("model_tests", "--source-file=*config_test.cpp", "F22"),
    Run("examples_tests", "--source-file=*bad_input_test.cpp", "F22"),
]


class Counts:
    def __init__(self):
        self.tried, self.survived, self.seconds, self.tests, self.failed = 0, 0, 0.0, [], []

    def add(self, line):
        self.tried += line["tried"]
        self.survived += line["survived"]


def say(text):
    print(text, file=sys.stderr, flush=True)


def run_tests(programs, run, counts, long):
    """Runs one of RUNS."""
    faults = run.faults.split()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        lines = pathlib.Path(scratch) / "counts"
        environment = {**os.environ, "SUPEROFFLOAD_FAULT_COUNTS": str(lines)}
        if long:
            environment["SUPEROFFLOAD_LONG_TESTS"] = "1"
        command = [programs / run.program, run.test]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment)
        counted = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    seconds = time.monotonic() - begin
    for name in faults:
        counts[name].tests.append(f"{run.program} {run.test}")
        counts[name].seconds += seconds / len(faults)
        if done.returncode != 0:
            counts[name].failed.append(run.test)
    for line in counted:
        if line["fault"] in faults:
            counts[line["fault"]].add(line)
    if done.returncode != 0:
        say(done.stdout[-6000:] + done.stderr[-2000:])
    said = ", ".join(f"{line['fault']} {line['survived']}/{line['tried']}" for line in counted if line["fault"] in faults)
    say(f"{run.program} {run.test}: {said or 'nothing'} in {seconds:.0f} s")


def run_script(count, name, *arguments):
    """Runs a script of tests/ whose last line is a count."""
    begin = time.monotonic()
    done = subprocess.run([ROOT / "tests" / name, *arguments], stdout=subprocess.PIPE, text=True)
    say(done.stdout)
    last = done.stdout.splitlines()[-1] if done.stdout else ""
    if done.returncode == 77:  # skipped
        return
    count.add(json.loads(last) if last.startswith("{") else {"tried": 0, "survived": 0})
    count.tests.append(f"tests/{name}")
    count.seconds += time.monotonic() - begin
    if done.returncode != 0:
        count.failed.append(name)


def add_fuzzing(counts):
    """What bench/record.py has kept of tests/fuzz/fuzz.py."""
    if FUZZ.exists():
        recorded = json.loads(FUZZ.read_text())
        for line in recorded["results"]:
            counts["F21"].add(line)
            counts["F21"].seconds += line["seconds"]
        counts["F21"].tests.append(f"{recorded['command']}: {FUZZ.relative_to(ROOT)}")


def rows_of(counts, long):
    rows = []
    for fault in FAULTS:
        count = counts[fault.name]
        if count.tests:
            rows.append({"fault": fault.name, "what": fault.what, "tried": count.tried, "survived": count.survived,
                         "promises": fault.promises, "aim": fault.aim, "seconds": round(count.seconds),
                         "tests": count.tests})
    return {"long": long, "faults": rows}


def show(result):
    say(f"{'fault':6} {'tried':>11} {'survived':>11} {'aim':>7}  {'promises':10} what")
    for row in result["faults"]:
        aim = row["aim"] if result["long"] and row["aim"] else ""
        say(f"{row['fault']:6} {row['tried']:11,} {row['survived']:11,} {aim:>7}  {row['promises']:10} {row['what']}")


def page_table(result):
    """The table of docs/reliability.md."""
    lines = ["| fault | what | tried | survived | promises |", "|---|---|---|---|---|"]
    for row in result["faults"]:
        lines.append(
            f"| {row['fault']} | {row['what']} | {row['tried']:,} | {row['survived']:,} | {row['promises']} |")
    return "\n".join(lines) + "\n"


def page_with(table):
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    return before + BEGIN + "\n" + table + "\n" + END + rest.split(END)[1]


def check(programs):
    """Whether each test of RUNS exists."""
    wrong = 0
    for run in RUNS:
        if not (programs / run.program).exists():
            say(f"{programs / run.program}: is not built")
            wrong += 1
            continue
        listed = subprocess.run([programs / run.program, "--list-test-cases", run.test], capture_output=True, text=True)
        filters = run.test.split("=", 1)[1].count(",") + 1
        if int(re.search(r"filters: (\d+)", listed.stdout)[1]) < filters:
            say(f"{run.program} {run.test}: there is no such test")
            wrong += 1
    names = {fault.name for fault in FAULTS}
    for name in {name for run in RUNS for name in run.faults.split()} - names:
        say(f"{name} is not in the table")
        wrong += 1
    if page_with(page_table(json.loads(RESULT.read_text())["results"])) != PAGE.read_text(encoding="utf-8"):
        say(f"{PAGE.relative_to(ROOT)}: the table is not that of {RESULT.relative_to(ROOT)}; write it with --page")
        wrong += 1
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="tests at once")
    parser.add_argument("--only", default="", help="faults, with commas between them")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    programs = arguments.build / "bin"
    if arguments.check:
        return check(programs)
    if arguments.page:
        PAGE.write_text(page_with(page_table(json.loads(RESULT.read_text())["results"])), encoding="utf-8")
        return 0
    names = [fault.name for fault in FAULTS]
    only = set(arguments.only.split(",")) if arguments.only else set(names)
    if not only <= set(names):
        parser.error(f"--only: expected some of {', '.join(names)}")
    counts = {name: Counts() for name in names}
    chosen = [run for run in RUNS if only & set(run.faults.split())]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:  # of programs
        list(pool.map(lambda run: run_tests(programs, run, counts, arguments.long), chosen))
    if arguments.long and "F4" in only:
        run_script(counts["F4"], "faults/mutants.py")
    if "soak" in only:
        run_script(counts["soak"], "faults/soak.py", programs / "finetune_llama", ROOT / "tests/data/models/llama",
                   ROOT / "tests/data/alpaca_64_rows.json", "100000" if arguments.long else "2000")
    if "hosts" in only:
        with_mpi = programs / "finetune_llama_mpi"  # unless all programs have it
        run_script(counts["hosts"], "hosts/run.py", "--program", with_mpi if with_mpi.exists() else programs / "finetune_llama",
                   "--suite", "faults", *(["--long"] if arguments.long else []))
    if "F21" in only:
        add_fuzzing(counts)
    result = rows_of(counts, arguments.long)
    result["faults"] = [row for row in result["faults"] if row["fault"] in only]
    show(result)
    if arguments.json:
        print(json.dumps(result, indent=1))
    good = True
    for row in result["faults"]:
        failed = counts[row["fault"]].failed
        if failed or row["survived"] < row["tried"] or row["tried"] == 0:
            say(f"{row['fault']}: {row['tried'] - row['survived']} not survived; failed: {', '.join(failed) or 'none'}")
            good = False
        elif arguments.long and row["tried"] < row["aim"]:
            say(f"{row['fault']}: {row['tried']} tried, expected {row['aim']}")
            good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
