#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Injects faults and prints a table of what is survived.

table.py [--build DIR] [--gpus N] [--long] [--json] [--jobs N] [--only F1,F3...] | --check | --page

Runs the tests that inject faults, from a build with the preset `test` (build/release), and counts. --gpus takes those of N
GPUs instead of those of the CPU. --long takes the long counts (an hour), and breaks the sources (mutants.py). --json prints
the result as bench/record.py keeps it; the table goes to standard error then. --check only sees that each test exists.
--page writes the tables of bench/results/faults.json and gpu_faults.json into docs/reliability.md. Exit status: 0 if all
faults are survived and happened, 1 if not.
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
RESULTS = ROOT / "bench/results"
TABLES = ("faults", "gpu_faults")  # files of RESULTS
PAGE = ROOT / "docs/reliability.md"

SKIPPED = 77  # the status of a test that cannot run here


class Fault(NamedTuple):
    name: str
    what: str
    promises: str
    aim: int  # how many a long run has at least; 0: no such number
    counted: str = ""  # what tests call it, which run on the CPU as well; otherwise its name


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

GPU_FAULTS = [
    Fault("G1", "F13 on one GPU and on several, 40 steps", "P4", 0, "F13"),
    Fault("G2", "100 steps again, on one GPU and on several, with other algorithms and protocols of NCCL", "P4", 0),
    Fault("G3", "F16 with a GPU for each rank: it is killed, ends, throws, stops or hangs", "P7", 0, "F16"),
    Fault("G4", "copies, kernels and events come late, and a copy's destination is NaN until then", "P4", 0),
    Fault("G5", "a test of kernels under a tool of compute-sanitizer", "P8", 0),
    Fault("G6", "F8 of the GPU's memory and of pinned memory", "P8", 0, "F8"),
    Fault("G7", "F12 on a GPU, and on several with an overflow on one of them", "P6", 0, "F12"),
    Fault("G8", "F14 between one GPU and several", "P5", 0, "F14"),
    Fault("full", "other programs leave little of the GPU's memory", "P8", 0, "F8"),
    Fault("lost", "the GPU is lost at any time", "P1 P4", 0),
]


class Run(NamedTuple):
    program: str
    test: str  # a filter of doctest
    faults: str
    alone: bool = False  # it fills the GPU's memory, or measures time
    one_gpu: bool = False


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

GPU_RUNS = [
    Run("nccl_tests", "-tc=a run that was interrupted on GPUs*", "G1"),
    Run("examples_tests", "-tc=two identical runs on GPUs*", "G2"),
    Run("nccl_tests", "-tc=when a rank with a GPU ends*", "G3", alone=True),
    Run("examples_tests", "-tc=the end of a rank in mid-run*", "G3"),
    Run("examples_tests", "-tc=work that comes late on its stream*", "G4", one_gpu=True),
    Run("examples_tests", "-tc=memory of the GPU or of pinned*", "G6", one_gpu=True),
    Run("examples_tests", "-tc=with little memory left on the GPU*", "full", alone=True, one_gpu=True),
    Run("cuda_tests", "--source-file=*offloaded_test.cpp", "G7", one_gpu=True),
    Run("nccl_tests", "-tc=a gradient that overflows on one rank's GPU*", "G7"),
    Run("nccl_tests", "-tc=state that some GPUs wrote*,a run that goes from one GPU to all*", "G8"),
    Run("examples_tests", "-tc=a GPU that is lost in mid-run*", "lost", one_gpu=True),
]

SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")


class Counts:
    def __init__(self):
        self.tried, self.survived, self.seconds, self.tests, self.failed = 0, 0, 0.0, [], []

    def add(self, line):
        self.tried += line["tried"]
        self.survived += line["survived"]


def say(text):
    print(text, file=sys.stderr, flush=True)


def run_tests(programs, run, counts, long, gpus):
    """Runs one of RUNS or GPU_RUNS."""
    faults = {fault.counted or fault.name: fault.name for fault in FAULTS + GPU_FAULTS if fault.name in run.faults.split()}
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        lines = pathlib.Path(scratch) / "counts"
        environment = {**os.environ, "SUPEROFFLOAD_FAULT_COUNTS": str(lines)}
        if long:
            environment["SUPEROFFLOAD_LONG_TESTS"] = "1"
        if gpus:
            environment.update(SUPEROFFLOAD_TEST_DEVICE="cuda", SUPEROFFLOAD_TEST_GPUS="1" if run.one_gpu else str(gpus))
        if run.one_gpu:
            environment["CUDA_VISIBLE_DEVICES"] = str(GPU_RUNS.index(run) % gpus)
        command = [programs / run.program, run.test]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment)
        counted = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    seconds = time.monotonic() - begin
    if done.returncode == SKIPPED:
        say(f"{run.program} {run.test}: {done.stdout.strip()}")
        return
    for name in faults.values():
        counts[name].tests.append(f"{run.program} {run.test}")
        counts[name].seconds += seconds / len(faults)
        if done.returncode != 0:
            counts[name].failed.append(run.test)
    for line in counted:
        if line["fault"] in faults:
            counts[faults[line["fault"]]].add(line)
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
    if done.returncode == SKIPPED:
        return
    count.add(json.loads(last) if last.startswith("{") else {"tried": 0, "survived": 0})
    count.tests.append(f"tests/{name}")
    count.seconds += time.monotonic() - begin
    if done.returncode != 0:
        count.failed.append(name)


def add_fuzzing(counts):
    """What bench/record.py has kept of tests/fuzz/fuzz.py."""
    for file in sorted(RESULTS.glob("fuzz*.json")):
        recorded = json.loads(file.read_text())
        for line in recorded["results"]:
            counts["F21"].add(line)
            counts["F21"].seconds += line["seconds"]
        counts["F21"].tests.append(f"{recorded['command']}: {file.relative_to(ROOT)}")


def run_sanitizer(build, tool, count, gpus):
    """A tool of compute-sanitizer, as tests/gpu.sh runs it on the kernels' tests."""
    begin = time.monotonic()
    done = subprocess.run(["bash", ROOT / "tests/gpu.sh", tool], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "SUPEROFFLOAD_GPU_BUILD": str(build),
                               "CUDA_VISIBLE_DEVICES": str(SANITIZERS.index(tool) % gpus)})
    counted = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for line in counted:
        count.add(line)
    count.tests.append(f"tests/gpu.sh {tool}")
    count.seconds += time.monotonic() - begin
    if done.returncode != 0 or not counted:
        count.failed.append(f"tests/gpu.sh {tool}")
        say(done.stdout)
    say(f"{tool}: {counted} in {time.monotonic() - begin:.0f} s")


def rows_of(faults, counts, long):
    rows = []
    for fault in faults:
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


def page_with_tables():
    page = PAGE.read_text(encoding="utf-8")
    for name in TABLES:
        begin, end = f"<!-- {name}.json: begin -->\n", f"<!-- {name}.json: end -->\n"
        before, rest = page.split(begin)
        table = page_table(json.loads((RESULTS / f"{name}.json").read_text())["results"])
        page = before + begin + "\n" + table + "\n" + end + rest.split(end)[1]
    return page


def check(programs):
    """Whether each test of RUNS exists."""
    wrong = 0
    for run in RUNS + GPU_RUNS:
        if run in GPU_RUNS and not (programs / run.program).exists():
            continue  # a build without CUDA
        if not (programs / run.program).exists():
            say(f"{programs / run.program}: is not built")
            wrong += 1
            continue
        listed = subprocess.run([programs / run.program, "--list-test-cases", "--no-skip", run.test], capture_output=True, text=True)
        if run in GPU_RUNS and listed.returncode == SKIPPED:
            continue  # a machine without GPUs
        filters = run.test.split("=", 1)[1].count(",") + 1
        if int(re.search(r"filters: (\d+)", listed.stdout)[1]) < filters:
            say(f"{run.program} {run.test}: there is no such test")
            wrong += 1
    names = {fault.name for fault in FAULTS + GPU_FAULTS}
    for name in {name for run in RUNS + GPU_RUNS for name in run.faults.split()} - names:
        say(f"{name} is not in the table")
        wrong += 1
    if page_with_tables() != PAGE.read_text(encoding="utf-8"):
        say(f"{PAGE.relative_to(ROOT)}: its tables are not those of {RESULTS.relative_to(ROOT)}; write them with --page")
        wrong += 1
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--gpus", type=int, default=0)
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
        PAGE.write_text(page_with_tables(), encoding="utf-8")
        return 0
    gpus = arguments.gpus
    faults, runs = (GPU_FAULTS, GPU_RUNS) if gpus else (FAULTS, RUNS)
    names = [fault.name for fault in faults]
    only = set(arguments.only.split(",")) if arguments.only else set(names)
    if not only <= set(names):
        parser.error(f"--only: expected some of {', '.join(names)}")
    counts = {name: Counts() for name in names}
    chosen = [run for run in runs if only & set(run.faults.split())]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:  # of programs
        waits = [pool.submit(run_tests, programs, run, counts, arguments.long, gpus) for run in chosen if not run.alone]
        if "G5" in only:
            waits += [pool.submit(run_sanitizer, arguments.build, tool, counts["G5"], gpus) for tool in SANITIZERS]
    for wait in waits:
        wait.result()  # an exception, if there was one
    for run in chosen:
        if run.alone:
            run_tests(programs, run, counts, arguments.long, gpus)
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
    result = rows_of(faults, counts, arguments.long)
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
