#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Runs what the documentation shows: snippets.py [--programs DIR] [--compiler CXX] [PAGE...]

PAGE is README.md or one below docs/; default: all of them. The comment above a fenced block says how it is tested. The blocks
of a page run in order, in one directory that looks like a clone of this project whose programs are built.

  <!-- test: run [exit N] -->      sh: runs, and ends with this status, default 0
  <!-- test: plan [on MACHINE] [except COMMAND...] -->
                                   sh: runs, with --dry_run of every fine-tuner, on bench/hardware/MACHINE.json (default: gb200)
                                   unless a command names another. The commands after `except` do nothing
  <!-- test: output -->            every line is one of what the block before has printed, in this order; ... stands for any text
  <!-- test: file NAME -->         is written to this file, which later blocks read
  <!-- test: skip REASON -->       is not tested; the reason is printed, and paths in it must exist

Without a comment, C++ is compiled (-fsyntax-only): a block that includes something alone, the others of docs/PAGE.md at their
places in tests/docs/frames/PAGE.cpp. JSON is parsed, also as lines. A block without a language, or of the language text, is text. A block of any other
language needs a comment.

The exit status is 1 if a block fails, and 2 if the programs are missing.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^( *)```(\w*)\s*$")
MARKER = re.compile(r"^ *<!-- test: (.*?) *-->\s*$")
TIME_LIMIT = 300
# Directories under the names that pages give to downloaded models. They have a config.json and no weights: enough for plans.
MODELS = {"Llama-3.1-8B": "llama-8b", "Llama-3.3-70B-Instruct": "llama-70b", "Mistral-7B-v0.3": "mistral-7b",
          "phi-4": "phi-4", "Qwen2.5-7B-Instruct": "qwen2.5-7b", "Qwen3-14B": "qwen3-14b",
          "Qwen3-30B-A3B": "qwen3-30b-a3b", "gpt-oss-20b": "gpt-oss-20b", "Seed-OSS-36B-Instruct": "seed-oss-36b"}


class Failure(Exception):
    pass


@dataclasses.dataclass
class Block:
    page: str
    line: int  # of its first line of text
    language: str
    marker: list  # its words, or None
    text: str

    def fail(self, message):
        raise Failure(f"{self.page}:{self.line}: {message}")


def blocks(page, text):
    """The fenced blocks of a page."""
    found, marker, opened = [], None, None
    for number, line in enumerate(text.split("\n"), 1):
        if opened:
            indent, block, lines = opened
            if line.strip() == "```":
                block.text = "".join(one[len(indent):] + "\n" for one in lines)
                found.append(block)
                opened = None
            else:
                lines.append(line)
        elif fence := FENCE.match(line):
            opened = fence[1], Block(page, number + 1, fence[2], marker, ""), []
            marker = None
        elif said := MARKER.match(line):
            if marker:
                raise Failure(f"{page}:{number}: two comments for one block")
            marker = said[1].split()
        elif line.strip() and marker:
            raise Failure(f"{page}:{number}: expected a fenced block below the comment of a test")
    if opened or marker:
        raise Failure(f"{page}: its last block is not closed, or its last comment has no block")
    return found


def expect_json(block):
    try:
        json.loads(block.text)
    except json.JSONDecodeError:
        try:
            for line in block.text.splitlines():
                json.loads(line)
        except json.JSONDecodeError as wrong:
            block.fail(f"neither JSON nor JSON lines: {wrong}")


class Workspace:
    """A directory that looks like a clone with built programs, and downloaded models beside it."""

    def __init__(self, directory, programs):
        self.directory = directory
        for name in ("examples", "bench/hardware", "bench/peers", "tests/data/configs"):
            shutil.copytree(ROOT / name, directory / name, ignore=shutil.ignore_patterns("*_*offload*"))
        for name, config in MODELS.items():
            shutil.copytree(ROOT / "tests/data/configs" / config, directory / name)
        self.bin = directory / "build/release/bin"
        self.bin.mkdir(parents=True)
        for program in sorted(programs.iterdir()):
            if program.name.startswith("finetune") or program.name == "tokenize":
                self.command(self.bin / program.name, plan_or_run(program))

    @staticmethod
    def command(path, text):
        path.write_text("#!/bin/sh\n" + text + "\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run(self, block, status, machine=None, without=()):
        environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(self.directory)}
        if without:
            idle = self.directory / "idle"
            shutil.rmtree(idle, ignore_errors=True)
            idle.mkdir()
            for name in without:
                self.command(idle / name, "exit 0")
            environment["PATH"] = f"{idle}:{environment['PATH']}"
        if machine:
            described = self.directory / f"bench/hardware/{machine}.json"
            if not described.is_file():
                block.fail(f"there is no bench/hardware/{machine}.json")
            environment["SNIPPET_MACHINE"] = str(described)
        try:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], cwd=self.directory, env=environment,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            block.fail(f"did not end within {TIME_LIMIT} s")
        if done.returncode != status:
            block.fail(f"ended with status {done.returncode}, expected {status}:\n{done.stdout}{done.stderr}")
        return done.stdout.splitlines(), done.stderr.splitlines()


def plan_or_run(program):
    if program.name == "tokenize":
        return f'exec "{program}" "$@"'
    return f"""if [ -n "${{SNIPPET_MACHINE:-}}" ]; then
  case " $* " in
    *" --hardware"[\\ =]*) ;;
    *) set -- "$@" --hardware "$SNIPPET_MACHINE" ;;
  esac
  set -- "$@" --dry_run
fi
exec "{program}" "$@\""""


def expect_output(block, streams):
    """Every line of the block is in one of the streams, behind the one before."""
    if streams is None:
        block.fail("no command has run before it")
    position = [0] * len(streams)
    for number, line in enumerate(block.text.rstrip("\n").split("\n"), block.line):
        if line.strip() in ("...", ""):
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in line.rstrip().split("...")) + r"\s*")
        for i, stream in enumerate(streams):
            at = next((at for at in range(position[i], len(stream)) if pattern.fullmatch(stream[at])), None)
            if at is not None:
                position[i] = at + 1
                break
        else:
            printed = "\n".join("  | " + one for stream in streams for one in stream)
            raise Failure(f"{block.page}:{number}: not printed, or not in this order: {line}\nprinted was:\n{printed}")


def expect_reason(block):
    reason = " ".join(block.marker[1:])
    if not reason:
        block.fail("skip without a reason")
    for path in re.findall(r"\b(?:tests|bench|examples|docs|\.ci|\.github)/[\w./-]*\w", reason):
        if not (ROOT / path).exists():
            block.fail(f"the reason names {path}, which does not exist")
    return reason


def run_page(page, found, programs):
    """Runs the blocks of a page that have a comment; returns a line for each block that is skipped."""
    skipped, streams = [], None
    with tempfile.TemporaryDirectory(prefix="superoffload_snippets.") as scratch:
        workspace = None
        for block in found:
            if block.marker is None:
                if block.language not in ("cpp", "json", "text", ""):
                    block.fail(f"a block of {block.language} without a comment that says how it is tested")
                if block.language == "json":
                    expect_json(block)
                continue
            verb, *words = block.marker
            if verb == "skip":
                skipped.append(f"{page}:{block.line}: skipped: {expect_reason(block)}")
                continue
            workspace = workspace or Workspace(pathlib.Path(scratch) / "superoffload", programs)
            if verb == "run" and block.language == "sh":
                if words and (len(words) != 2 or words[0] != "exit"):
                    block.fail("expected: run [exit N]")
                streams = workspace.run(block, int(words[1]) if words else 0)
            elif verb == "plan" and block.language == "sh":
                at = words.index("except") if "except" in words else len(words)
                if at not in (0, 2) or at == 2 and words[0] != "on":
                    block.fail("expected: plan [on MACHINE] [except COMMAND...]")
                streams = workspace.run(block, 0, words[1] if at else "gb200", words[at + 1:])
            elif verb == "output" and not words:
                expect_output(block, streams)
            elif verb == "file" and len(words) == 1:
                if block.language == "json":
                    expect_json(block)
                (workspace.directory / words[0]).write_text(block.text)
            else:
                block.fail(f"no test of {block.language or 'text'}: {' '.join(block.marker)}")
    return skipped


def translation_units(page, found):
    """(first block, source) of the C++ blocks of a page."""
    def located(block):
        return f'#line {block.line} "{page}"\n{block.text}'

    parts = [block for block in found if block.language == "cpp" and block.marker is None]
    for block in parts:
        if "#include" in block.text:
            yield block, located(block)
    parts = [block for block in parts if "#include" not in block.text]
    frame = ROOT / "tests/docs/frames" / (pathlib.PurePath(page).stem + ".cpp")
    if not parts:
        return
    if not frame.is_file():
        parts[0].fail(f"expected its place in {frame.relative_to(ROOT)}")
    pieces = re.split(r"(?m)^ *// block (\d+)\n", frame.read_text())
    places = [int(number) for number in pieces[1::2]]
    if places != list(range(1, len(parts) + 1)):
        parts[0].fail(f"{frame.relative_to(ROOT)} has places for blocks {places}, but {page} has {len(parts)}")
    source = pieces[0]
    for number, after in zip(places, pieces[2::2]):
        source += located(parts[number - 1]) + after
    yield parts[0], source


def compile_unit(compiler, block, source):
    includes = [f"-I{ROOT / 'include'}"]
    if "superoffload/cuda/" in source:
        nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        toolkit = pathlib.Path(nvcc).resolve().parents[1] / "include"
        if not (toolkit / "cuda_runtime_api.h").is_file():
            return f"{block.page}:{block.line}: skipped: there is no CUDA toolkit"
        includes += ["-isystem", str(toolkit)]
    done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-DSUPEROFFLOAD_COMPILED", *includes, "-x", "c++", "-"],
                          input=source, capture_output=True, text=True)
    if done.returncode != 0:
        block.fail(f"does not compile:\n{done.stderr}")
    return None


def pages(names):
    if names:
        return names
    return ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("pages", nargs="*")
    arguments = parser.parse_args()
    if not (arguments.programs / "finetune_llama").is_file():
        print(f"{arguments.programs}/finetune_llama is missing: build the programs, or name their directory with --programs")
        return 2
    failed, skipped, tested = [], [], 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tasks = []
        for page in pages(arguments.pages):
            try:
                found = blocks(page, (ROOT / page).read_text(encoding="utf-8"))
                tested += len(found)
                tasks.append(pool.submit(run_page, page, found, arguments.programs.resolve()))
                tasks += [pool.submit(compile_unit, arguments.compiler, *unit) for unit in translation_units(page, found)]
            except Failure as failure:
                failed.append(str(failure))
        for task in tasks:
            try:
                result = task.result()
                skipped += [result] if isinstance(result, str) else result or []
            except Failure as failure:
                failed.append(str(failure))
    print("\n".join(skipped + failed))
    print(f"{tested} blocks, {len(skipped)} skipped, {len(failed)} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
