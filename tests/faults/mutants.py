#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Breaks the sources on purpose, one way after the other, and sees a test fail: mutants.py [--check | NAME...]

The sources are copied to build/mutants and built there. Each mutant leaves out what keeps a promise: a sync, a rename, a
checksum, a bound, a lock, a vote. The smallest test that is responsible must fail. Prints one line for each, and at the end
one line of JSON with how many were tried and caught; the exit status is 1 if one was not. With names: these alone.
--check: only sees that each mutant's text is in the sources exactly once.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE = ROOT / "build/mutants"
TREE = PLACE / "tree"
BUILD = PLACE / "build"
SECONDS = 600  # of a test; with a mutant three times what it takes without, and a minute. One that hangs has failed

IO = "include/superoffload/io/impl/"
COMM = "include/superoffload/comm/"
RUN = "include/superoffload/train/run/impl/"


class Mutant(NamedTuple):
    name: str
    file: str
    text: str  # once in the file
    becomes: str
    program: str
    test: str  # a filter of test cases, or of sources


CRASH = "--source-file=*crash_states_test.cpp"

MUTANTS = [
    Mutant(
        "data are not synced",
        IO + "file_inl.hpp",
        "return ::fsync(descriptor_);",
        "return 0;",
        "faults_tests",
        CRASH,
    ),
    Mutant(
        "names are not synced",
        IO + "directory_inl.hpp",
        "return ::fsync(descriptor);",
        "return 0;",
        "faults_tests",
        CRASH,
    ),
    Mutant(
        "a checkpoint's own directory is not synced",
        IO + "train_checkpoint_inl.hpp",
        "  sync_directory(directory());\n",
        "",
        "faults_tests",
        CRASH,
    ),
    Mutant(
        "a renamed checkpoint is not synced",
        IO + "directory_inl.hpp",
        "    rename_path(staged, destination);\n    sync_directory(parent);\n    return;",
        "    rename_path(staged, destination);\n    return;",
        "faults_tests",
        CRASH,
    ),
    Mutant(
        "checkpoints that are retired are not renamed for good before they are removed",
        IO + "train_checkpoint_inl.hpp",
        "  sync_directory(root);\n  for (auto const& path : trash)",
        "  for (auto const& path : trash)",
        "faults_tests",
        CRASH,
    ),
    Mutant(
        "an export's own directory is not synced",
        IO + "hub_export_inl.hpp",
        "  sync_directory(staged.path());\n",
        "",
        "faults_tests",
        CRASH,
    ),
    Mutant(
        "a file is replaced in place",
        IO + "directory_inl.hpp",
        "    write_new_file(aside, content);\n    rename_path(aside, path);",
        "    ::unlink(path.c_str());\n    write_new_file(path, content);",
        "faults_tests",
        CRASH,
    ),
    Mutant(
        "a run that goes on forgets its place in the data",
        RUN + "run_state_inl.hpp",
        'state.where.sequence = root["data_position"]["sequence"].integer(0, most);',
        "state.where.sequence = 0;",
        "faults_tests",
        CRASH,
    ),
    Mutant(
        "old checkpoints are removed without a rename",
        IO + "train_checkpoint_inl.hpp",
        "    rename_path(checkpoint_path(root, old), trash.back());",
        "    trash.back() = checkpoint_path(root, old);",
        "io_tests",
        "-tc=a save killed at any operation*",
    ),
    Mutant(
        "rotation takes checkpoints of other runs",
        IO + "train_checkpoint_inl.hpp",
        "return other != step && run_of(checkpoint_path(root, other)) != run;",
        "return run.empty() && other < 0;",
        "io_tests",
        "-tc=rotation does not touch*",
    ),
    Mutant(
        "checksums of data are not compared",
        IO + "train_checkpoint_inl.hpp",
        "expect(crc32c(narrow) == place.checksum,",
        "expect(true || crc32c(narrow) == place.checksum,",
        "io_tests",
        "-tc=damage to any rank's part*",
    ),
    Mutant(
        "the manifest's digest is not compared",
        IO + "train_checkpoint_inl.hpp",
        "expect(sha256_hex(std::as_bytes(std::span{rest})) == digest,",
        "expect(true || sha256_hex(std::as_bytes(std::span{rest})) == digest,",
        "io_tests",
        "-tc=any changed or missing byte*",
    ),
    Mutant(
        "bytes between blobs are not checked",
        IO + "train_checkpoint_inl.hpp",
        "  if (offset == placed.bytes) {\n    expect_zeros",
        "  if (false && offset == placed.bytes) {\n    expect_zeros",
        "io_tests",
        "-tc=any changed or missing byte*",
    ),
    Mutant(
        "the size of a rank's file is not compared",
        IO + "train_checkpoint_inl.hpp",
        "expect(data.size() == bytes,",
        "expect(data.size() >= bytes,",
        "io_tests",
        "-tc=any changed or missing byte*",
    ),
    Mutant(
        "a checkpoint that cannot be read is passed over",
        IO + "train_checkpoint_inl.hpp",
        "      if (reason.code() != exit_code::bad_input) {\n        throw;  // an unreadable",
        "      if (false) {\n        throw;  // an unreadable",
        "io_tests",
        "-tc=a newest checkpoint that cannot be read*",
    ),
    Mutant(
        "hosts go on from checkpoints of the same step that differ",
        RUN + "common_checkpoint_inl.hpp",
        "reader->digest());",
        "std::string{});",
        "train_tests",
        "-tc=a checkpoint of the same step with another manifest*",
    ),
    Mutant(
        "a host removes old checkpoints before all have the new one",
        RUN + "checkpoint_writer_inl.hpp",
        "    all_keepers([](auto& draft) { draft.commit(); });\n    all_keepers([&](auto& draft) { draft.retire(keep_last_); });",
        "    all_keepers([&](auto& draft) {\n      draft.commit();\n      draft.retire(keep_last_);\n    });",
        "train_tests",
        "-tc=if one host cannot complete*",
    ),
    Mutant(
        "a header may be longer than its file",
        IO + "safetensors_inl.hpp",
        "expect(length <= file_bytes - 8,",
        "expect(true || length <= file_bytes - 8,",
        "io_tests",
        "-tc=malformed safetensors files",
    ),
    Mutant(
        "tensors may overlap",
        IO + "safetensors_inl.hpp",
        "expect(entry->second.begin == position,",
        "expect(true || entry->second.begin == position,",
        "io_tests",
        "-tc=malformed safetensors files",
    ),
    Mutant(
        "every lock is free",
        IO + "file_lock_inl.hpp",
        "while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0)",
        "while (::flock(descriptor, LOCK_SH | LOCK_NB) != 0)",
        "io_tests",
        "-tc=one process at a time holds a lock*",
    ),
    Mutant(
        "an export replaces anything",
        IO + "hub_export_inl.hpp",
        "  if (fs::exists(destination, failure)) {\n    expect_export(destination);",
        "  if (false) {\n    expect_export(destination);",
        "io_tests",
        "-tc=an export refuses to replace*",
    ),
    Mutant(
        "what a killed export moved aside stays there",
        IO + "hub_export_inl.hpp",
        "  restore_replaced(destination);\n",
        "",
        "io_tests",
        "-tc=an export that fails or is killed*",
    ),
    Mutant(
        "links out of a model's directory are followed",
        IO + "model_directory_inl.hpp",
        "  expect(inside, exit_code::bad_input, shown(path),",
        "  expect(inside || true, exit_code::bad_input, shown(path),",
        "io_tests",
        "-tc=a link out of a model's directory*",
    ),
    Mutant(
        "a short write counts as a whole one",
        IO + "file_inl.hpp",
        "    data = data.subspan(static_cast<std::size_t>(put));\n    offset += static_cast<std::uint64_t>(put);",
        "    data = {};",
        "io_tests",
        "-tc=interrupted and short transfers*",
    ),
    Mutant(
        "an interrupted call is not repeated",
        IO + "file_inl.hpp",
        "  return uninterrupted([&] {\n    int const injected = injected_fault(what, path);\n"
        "    return injected > 0 ? (errno = injected, -1) : system_call(injected);\n  });",
        "  int const injected = injected_fault(what, path);\n"
        "  return injected > 0 ? (errno = injected, -1) : system_call(injected);",
        "io_tests",
        "-tc=interrupted and short transfers*",
    ),
    Mutant(
        "an error of close is not reported",
        IO + "file_inl.hpp",
        "expect_done((result == 0 && injected <= 0) || errno == EINTR, path_,",
        "expect_done(result == 0 || true, path_,",
        "io_tests",
        "-tc=every failing operation is reported*",
    ),
    Mutant(
        "ranks do not compare their calls",
        COMM + "impl/shared_segment_inl.hpp",
        "    if (!mine.same_as(theirs)) {",
        "    if (false) {",
        "comm_tests",
        "--source-file=*comm/shared_test.cpp",
    ),
    Mutant(
        "a rank that left is waited for",
        COMM + "impl/shared_segment_inl.hpp",
        "if (state == rank_state::left && !has_published(l, r)) {",
        "if (false) {",
        "comm_tests",
        "--source-file=*comm/shared_test.cpp",
    ),
    Mutant(
        "ranks do not agree that one of them failed",
        COMM + "agreement.hpp",
        "  auto const failed = std::find_if(codes.begin(), codes.end(), [](int c) { return c != 0; });",
        "  auto const failed = code != 0 ? codes.begin() + group.rank() : codes.end();",
        "comm_tests",
        "--source-file=*agreement_test.cpp",
    ),
]


def files():
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )
    return [name for name in listed.stdout.split("\0") if name]


def copy_sources():
    """Files that are equal keep their time, so that a second run builds less."""
    TREE.mkdir(parents=True, exist_ok=True)
    wanted = set(files())
    for name in wanted:
        source, target = ROOT / name, TREE / name
        if not source.is_file():
            continue
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    for target in [path for path in TREE.rglob("*") if path.is_file()]:
        if target.relative_to(TREE).as_posix() not in wanted:
            target.unlink()


def build(*targets):
    done = subprocess.run(
        ["cmake", "--build", BUILD, "--parallel", str(os.cpu_count()), "--target", *targets],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )
    return None if done.returncode == 0 else done.stdout[-3000:]


def targets_of(program):
    return [program, "finetune_llama"] if program == "faults_tests" else [program]


def configure():
    launcher = ["-D", "CMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    subprocess.run(
        ["cmake", "-S", TREE, "-B", BUILD, "-G", "Ninja", "--log-level=WARNING", *launcher, "-D", "CMAKE_BUILD_TYPE=",
         "-D", "CMAKE_CXX_FLAGS=-O1", "-D", "SUPEROFFLOAD_BUILD_TESTS=ON", "-D", "SUPEROFFLOAD_CUDA=OFF",
         "-D", "SUPEROFFLOAD_TEST_SOURCES=OFF", "-D", "SUPEROFFLOAD_FINETUNERS=llama;qwen3"],
        check=True,
    )


def passes(mutant, most=SECONDS):
    """Whether the test passes in so many seconds, and how long it took."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SUPEROFFLOAD_")}
    begin = time.monotonic()
    try:
        done = subprocess.run(
            [BUILD / "bin" / mutant.program, mutant.test, "--abort-after=1"], capture_output=True, env=environment,
            timeout=most,
        )
        passed = done.returncode == 0
        if passed and b"test cases: 0 " in b" ".join(done.stdout.split()):
            sys.exit(f"mutants.py: no test of {mutant.program} is called {mutant.test}")
    except subprocess.TimeoutExpired:
        passed = False
    return passed, time.monotonic() - begin


def check():
    wrong = [m for m in MUTANTS if (ROOT / m.file).read_text(encoding="utf-8").count(m.text) != 1]
    for mutant in wrong:
        print(f"{mutant.file}: does not have the text of the mutant '{mutant.name}' exactly once")
    print(f"{len(MUTANTS)} mutants")
    return 1 if wrong or len({m.name for m in MUTANTS}) != len(MUTANTS) else 0


def main(names):
    if names == ["--check"]:
        return check()
    chosen = [m for m in MUTANTS if not names or m.name in names]
    if not chosen or check() != 0:
        return 2
    copy_sources()
    configure()
    programs = {target for mutant in chosen for target in targets_of(mutant.program)}
    failure = build(*sorted(programs))
    if failure:
        sys.exit(f"mutants.py: the sources do not build\n{failure}")
    takes = {}
    for program, test in sorted({(m.program, m.test) for m in chosen}):
        passed, takes[program, test] = passes(Mutant("", "", "", "", program, test))
        if not passed:
            sys.exit(f"mutants.py: {program} {test} fails without a mutant")
    caught = 0
    for mutant in chosen:
        file = TREE / mutant.file
        whole = file.read_text(encoding="utf-8")
        file.write_text(whole.replace(mutant.text, mutant.becomes), encoding="utf-8")
        try:
            failure = build(*targets_of(mutant.program))
            if failure:
                sys.exit(f"mutants.py: '{mutant.name}' does not build\n{failure}")
            passed, seconds = passes(mutant, 3 * takes[mutant.program, mutant.test] + 60)
        finally:
            file.write_text(whole, encoding="utf-8")
        caught += not passed
        print(f"{'NOT CAUGHT' if passed else 'caught'} in {seconds:.1f} s: {mutant.name} ({mutant.program} {mutant.test})",
              flush=True)
    build(*sorted(programs))  # without mutants
    print(json.dumps({"fault": "F4", "tried": len(chosen), "survived": caught}))
    return 0 if caught == len(chosen) else 1


if __name__ == "__main__":
    if sys.argv[1:2] in (["-h"], ["--help"]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
