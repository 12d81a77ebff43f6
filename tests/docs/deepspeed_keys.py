#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Holds docs/tasks/from-deepspeed.md to the code: deepspeed_keys.py [PROGRAMS]

The first columns of the page's tables name every key that include/superoffload/train/deepspeed reads, once, and no other. With
the programs: finetune_llama names the keys without effect in its note, and ends with code 2 for each key that is refused.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/tasks/from-deepspeed.md"
SOURCE = ROOT / "include/superoffload/train/deepspeed/impl/config_inl.hpp"
# The path of the section that a variable of a function is.
SECTIONS = {
    ("read_bf16", "bf16"): "bf16.", ("read_precision", "root"): "", ("read_precision", "fp16"): "fp16.",
    ("read_betas", "params"): "optimizer.params.", ("read_optimizer", "root"): "",
    ("read_optimizer", "optimizer"): "optimizer.", ("read_optimizer", "params"): "optimizer.params.",
    ("read_scheduler", "root"): "", ("read_scheduler", "scheduler"): "scheduler.",
    ("read_scheduler", "params"): "scheduler.params.",
    ("read_offload_optimizer", "zero"): "zero_optimization.",
    ("read_offload_optimizer", "offload"): "zero_optimization.offload_optimizer.",
    ("read_offload_param", "zero"): "zero_optimization.",
    ("read_offload_param", "offload"): "zero_optimization.offload_param.",
    ("read_zero", "root"): "", ("read_zero", "zero"): "zero_optimization.",
    ("read_checkpoint", "root"): "", ("read_checkpoint", "checkpoint"): "checkpoint.", ("read_others", "root"): "", ("parse_deepspeed_config", "root"): "",
}
ONE_KEY = r"(?:member|open_member|object|real|rate|count|boolean|one_of|only)"
CALL = re.compile(rf'\b(\w+)(?:\.|->){ONE_KEY}\(\s*(?:"(\w+)"|key\b)')
LIST = re.compile(r"\b(\w+)(?:\.|->)(?:without_effect|ignore|not_enabled)\(\s*(?:\{([^}]*)\}|(\w+))", re.S)
LOOP = re.compile(r"for \(char const\* const key :\s*\{([^}]*)\}\)(.*?)(?=\n  \}|\n    \})", re.S)


def keys_of_code():
    text = SOURCE.read_text()
    named = {name: re.findall(r'"(\w+)"', listed)
             for name, listed in re.findall(r"initializer_list<char const\*> (\w+)\{([^}]*)\}", text)}
    keys = set()

    def add(function, variable, names):
        if (function, variable) not in SECTIONS:
            sys.exit(f"{SOURCE.relative_to(ROOT)}: {function} reads a section '{variable}': add its path to SECTIONS here")
        keys.update(SECTIONS[function, variable] + name for name in names)

    functions = re.split(r"(?m)^SUPEROFFLOAD_INLINE [\w: ]+?\b(\w+)\(", text)
    for function, body in zip(functions[1::2], functions[2::2]):
        if "class section" in body:
            body = body[:body.index("class section")]
        for loop in LOOP.finditer(body):
            for variable in {match[1] for match in CALL.finditer(loop[2]) if match[2] is None}:
                add(function, variable, re.findall(r'"(\w+)"', loop[1]))
        for match in CALL.finditer(body):
            if match[2]:
                add(function, match[1], [match[2]])
        for variable, listed, name in LIST.findall(body):
            add(function, variable, named[name] if name else re.findall(r'"(\w+)"', listed))
    return {key for key in keys if not any(other.startswith(key + ".") for other in keys)}  # without sections


def keys_of_page():
    """Heading -> the keys of its tables' first columns."""
    keys, heading = {}, None
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("| `"):
            keys.setdefault(heading, []).extend(re.findall(r"`([\w.]+)`", line.split("|")[1]))
    return keys


def configuration(keys, value):
    """A configuration with these keys."""
    whole = {"zero_optimization": {"stage": 3}}
    for path in keys:
        part = whole
        *sections, key = path.split(".")
        for section in sections:
            part = part.setdefault(section, {"type": "AdamW"} if section == "optimizer" else {})
        part[key] = value
    return whole


class Program:
    def __init__(self, programs, scratch):
        self.command = [programs / "finetune_llama", "--model", ROOT / "tests/data/configs/llama-8b", "--dataset", "none",
                        "--output_dir", "none", "--dry_run", "--hardware", ROOT / "bench/hardware/gb200.json"]
        self.file = scratch / "ds.json"

    def run(self, whole):
        self.file.write_text(json.dumps(whole))
        return subprocess.run([*self.command, "--deepspeed_config", self.file], capture_output=True, text=True)


def differences_of_runs(keys, program):
    # Three keys have a type even without effect; what DeepSpeed's monitors read is anything.
    typed = {"zero_optimization.reduce_bucket_size": 5, "zero_optimization.sub_group_size": 5}
    whole = configuration(keys["Keys without effect"], False)
    for path, value in typed.items():
        whole["zero_optimization"][path.split(".")[1]] = value
    done = program.run(whole)
    noted = set(re.findall(r"[\w.]+", done.stderr.partition("without effect here: ")[2]))
    for key in keys["Keys without effect"]:
        if done.returncode != 0 or key not in noted:
            yield f"{key}: expected in the note, status {done.returncode}: {done.stderr}"
    for key in keys["Keys that are refused"]:
        refused = [value for value in (True, False, 7, {"enabled": True}) if program.run(configuration([key], value)).returncode == 2]
        if not refused:
            yield f"{key}: expected a value that is refused"


def main():
    on_page = keys_of_page()
    listed = [key for keys in on_page.values() for key in keys]
    code = keys_of_code()
    wrong = [f"missing on the page: {key}" for key in sorted(code - set(listed))]
    wrong += [f"not read by the code: {key}" for key in sorted(set(listed) - code)]
    wrong += [f"twice on the page: {key}" for key in sorted({key for key in listed if listed.count(key) > 1})]
    if sys.argv[1:]:
        with tempfile.TemporaryDirectory() as scratch:
            wrong += differences_of_runs(on_page, Program(pathlib.Path(sys.argv[1]), pathlib.Path(scratch)))
    print("\n".join(wrong) or f"{len(code)} keys of DeepSpeed's configurations, all on the page")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
