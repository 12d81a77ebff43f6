#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Checks what the compiler does not: check.py [ROOT]

Includes go downward only and never in a circle, docs/design.md has the same table and names every sub-directory,
include/ is headers alone, heavy third-party headers stay in implementations (impl/*_inl.hpp), no class of include/ has a
body of more than 350 lines and no function one of more than 60 (unless the line above it says why), every source names
its licence, every script is executable, and nothing refers to a path outside the project. Prints one line per violation;
the exit status is 1 if there was any.
"""

import itertools
import os
import pathlib
import re
import subprocess
import sys

# Directory under include/superoffload -> the directories it may include besides itself.
ALLOWED = {
    "core": "",
    "kernel": "core",
    "cpu": "core kernel",
    "cuda": "core kernel",
    "cudnn": "core kernel cuda",
    "comm": "core kernel",
    "nccl": "core kernel cuda comm",
    "mpi": "core comm",
    "io": "core",
    "text": "core io",
    "data": "core io text",
    "autograd": "core kernel",
    "optim": "core kernel",
    "zero": "core kernel autograd comm",
    "offload": "core kernel cpu comm autograd optim zero",
    "nn": "core kernel autograd",
    "model": "core kernel autograd nn io",
    "train": "core kernel cpu comm io text data autograd optim zero offload nn model",
    "cli": "core kernel cpu cuda cudnn comm nccl mpi io text data autograd optim zero offload nn model train",
}
# The same of sub-directories of one directory: what a step does knows nothing of what decides about it beforehand.
ALLOWED_BESIDE = {
    "offload/scheduling": "",
    "offload/state": "scheduling",
}
HEAVY = re.compile(r"^(nlohmann/|CLI/|Eigen/|unsupported/Eigen/|xsimd/|utf8proc|cudnn|nccl)")
# Headers with a heavy one as their purpose, bodies of kernels, and implementations.
HEAVY_HEADERS = re.compile(r"^superoffload/(io/json\.hpp|cpu/kernels/.*|\w+/(\w+/)?impl/\w+_inl\.hpp)$")
# How a header includes its implementation: at its end, unless that is compiled separately.
GUARDED = re.compile(r"\n#ifndef SUPEROFFLOAD_COMPILED\n#include <(superoffload/\w+/(?:\w+/)?impl/\w+_inl\.hpp)>\n#endif\n$")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
SPDX = ("SPDX-FileCopyrightText:", "SPDX-License-Identifier: Apache-2.0")
SOURCES = {".hpp", ".cuh", ".cpp", ".cmake", ".py", ".sh", ".in"}
# Text whose braces are not code, and the beginning of a class's body. `class T` of a template's parameters has none.
NO_CODE = re.compile(r'R"(\w*)\((?s:.*?)\)\1"|//[^\n]*|/\*(?s:.*?)\*/|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'')
# Lines go to the log's sink.
STANDARD_STREAM = re.compile(r"\b(?:stderr|stdout|std::cerr|std::clog|std::cout)\b")
SINK = "superoffload/core/impl/log_inl.hpp"
CLASS = re.compile(r"\b(?:class|struct|union)\s+(?:alignas\([^)]*\)\s*|\[\[[^\]]*\]\]\s*)*"
                   r"([\w:]+)(?:<[^;{}]*?>)?(?:\s+final)?\s*(?::[^:;{}][^;{}]*)?\{")
MOST_LINES = 350
# Other scopes of declarations, and the last line of the comment above a function that may be long, which says why.
SCOPE = re.compile(r"(?:\bnamespace\b[\w:\s]*|\bextern\s*|\benum\b[^;{}()]*)\{")
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
ONE_PIECE = re.compile(r"^[ \t]*///? one piece: ", re.MULTILINE)
MOST_FUNCTION_LINES = 60
# Spelt in pieces, so that this file does not contain what it looks for.
OUTSIDE = re.compile((r"\.\./" + "shared|/" + r"work/").encode())


def files(root):
    """Tracked and new files, as paths relative to root; all files where git or its repository is missing."""
    try:
        git = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                             capture_output=True, check=True)
        names = [pathlib.PurePath(name) for name in git.stdout.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = [path.relative_to(root) for path in root.rglob("*")]
        names = [name for name in names if name.parts[0] not in {"build", ".git", ".cache"}]
    return sorted(name for name in set(names) if (root / name).is_file())


def check_includes(name, text):
    """name: path under include/, as an include directive writes it."""
    module = name.parts[1] if len(name.parts) > 2 else None
    if module is not None and module not in ALLOWED:
        yield 1, f"directory '{module}' has no entry in the table of allowed includes"
        return
    guarded = GUARDED.search(text)
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        bracket, target = match.groups()
        if guarded and match.start() > guarded.start():
            continue
        if bracket == '"':
            yield line, f'#include "{target}": expected <superoffload/...>'
            continue
        parts = target.split("/")
        if parts[0] == "superoffload" and module is not None:
            if len(parts) == 2 and name.name != parts[1]:
                yield line, f"includes the umbrella <{target}>: name the header itself"
            elif len(parts) > 2 and parts[1] != module and parts[1] not in ALLOWED[module].split():
                yield line, f"{module} includes <{target}>: it may include {ALLOWED[module] or 'nothing'} only"
            beside = "/".join(name.parts[1:3])
            if beside in ALLOWED_BESIDE and len(parts) > 3 and parts[1:3] != list(name.parts[1:3]) and (
                    parts[1] == module and parts[2] not in ALLOWED_BESIDE[beside].split()):
                yield line, f"{beside} includes <{target}>: of {module}/ it may include {ALLOWED_BESIDE[beside] or 'no other sub-directory'} only"
        if name.suffix == ".hpp" and not HEAVY_HEADERS.match(name.as_posix()):
            if HEAVY.match(target) or HEAVY_HEADERS.match(target):
                yield line, f"a public header includes the heavy <{target}>: only impl/*_inl.hpp may"


def check_streams(name, text):
    """The library writes to no standard stream by itself, but for a program's command line, which answers on them."""
    if name.parts[1] == "cli":
        return
    code = NO_CODE.sub(lambda match: "\n" * match[0].count("\n"), text)
    for match in STANDARD_STREAM.finditer(code):
        if name.as_posix() != SINK:
            yield code.count("\n", 0, match.start()) + 1, f"uses {match[0]}: expected log() of core/log.hpp"


def check_sizes(text):
    """A class that is short enough to read at once."""
    code = NO_CODE.sub(lambda match: "\n" * match[0].count("\n"), text)
    for match in CLASS.finditer(code):
        depth, end = 0, match.end() - 1
        for end in range(match.end() - 1, len(code)):
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            if depth == 0:
                break
        lines = code.count("\n", match.end(), end)
        if lines > MOST_LINES:
            yield (code.count("\n", 0, match.start()) + 1,
                   f"the body of {match[1]} has {lines} lines: expected {MOST_LINES} at most, cut it along its sentences")


def functions(code):
    """Begin of the declaration, opening and closing brace of every function. code: as clang-format leaves it, so a space
    stands before the brace of a body and none before that of an initialiser."""
    begin, scopes, depth, body = 0, [], 0, None
    for match in re.finditer(r"[{};]", code):
        at = match.start()
        head = code[begin:at]
        if match[0] == "{":
            depth += 1
            if len(scopes) + 1 == depth:  # not in a function or an initialiser
                whole = CLASS.search(head + "{") or SCOPE.search(head + "{")
                if whole and whole.end() == len(head) + 1:
                    scopes.append(depth)
                    begin = at + 1
                elif "(" in head and head[-1:].isspace() and not head.rstrip().endswith("="):
                    body = begin + len(head) - len(head.lstrip()), at
        elif match[0] == "}":
            depth -= 1
            if len(scopes) > depth:
                scopes.pop()
                begin = at + 1
            elif body and len(scopes) == depth:
                yield *body, at
                begin, body = at + 1, None
        elif len(scopes) == depth:
            begin = at + 1


def blank(match):
    """As many spaces: what lies behind keeps its position."""
    return re.sub(r"[^\n]", " ", match[0])


def check_functions(text):
    """A function that one sees whole."""
    explained = {text.count("\n", 0, match.start()) + 1 for match in ONE_PIECE.finditer(text)}
    for begin, opening, closing in functions(DIRECTIVE.sub(blank, NO_CODE.sub(blank, text))):
        line = text.count("\n", 0, begin) + 1
        lines = text.count("\n", opening, closing) - 1
        if lines > MOST_FUNCTION_LINES and line - 1 not in explained:
            yield line, (f"a function's body has {lines} lines: expected {MOST_FUNCTION_LINES} at most, cut it along its "
                         "sentences, or let the line above it say why not: '// one piece: '")
        if lines > MOST_FUNCTION_LINES:
            explained.discard(line - 1)
    for line in sorted(explained):
        yield line, f"'one piece' is said above what is no function of more than {MOST_FUNCTION_LINES} lines"


def check_circles(includes):
    """includes: header -> what it includes before its declarations, and behind them. The implementation, which a header includes behind them, may include it and others that do the same. In every other circle a header would be
    compiled before what it needs is declared."""
    done, path = set(), []

    def visit(name):
        if name in path:
            circle = path[path.index(name):]
            # Only their implementation includes the bodies of kernels.
            if any("/impl/" not in header and "/cpu/kernels/" not in header and after in includes[header][0]
                   for header, after in zip(circle, circle[1:] + circle[:1])):
                yield circle
            return
        if name in done:
            return
        path.append(name)
        for target in itertools.chain(*includes.get(name, ())):
            yield from visit(target)
        path.pop()
        done.add(name)

    for name in includes:
        for circle in visit(name):
            yield pathlib.PurePath("include", circle[0]), 1, "includes itself through " + ", ".join(circle[1:])


def check_design(text, directories):
    """The table of directories in docs/design.md is ALLOWED, and names the sub-directories among `directories`."""
    said = {name: (line, allowed) for line, row in enumerate(text.split("\n"), 1)
            for name, allowed in re.findall(r"^\| `(\w+)` \| ([a-z ]*)\|", row)}
    if not said:
        return
    for name, allowed in ALLOWED.items():
        line, row = said.get(name, (1, None))
        if row is None:
            yield line, f"the table of directories lacks {name}"
        elif row.strip() not in (allowed, "all of these") or row.strip() == "all of these" and name not in ("train", "cli"):
            yield line, f"{name} may include '{allowed}', not '{row.strip()}'"
    named = {name: line for line, row in enumerate(text.split("\n"), 1) if row.startswith("| `")
             for name in re.findall(r"`(\w+/\w+)`", row.split("|")[1])}
    for name in sorted(directories - named.keys()):
        yield 1, f"the table of directories lacks {name}"
    for name in sorted(named.keys() - directories):
        yield named[name], f"include/superoffload/{name} does not exist"


def check(root):
    names = files(root)
    includes = {}
    directories = {"/".join(name.parts[2:4]) for name in names
                   if name.parts[:2] == ("include", "superoffload") and len(name.parts) > 4 and name.parts[3] != "impl"}
    for name in names:
        content = (root / name).read_bytes()
        for match in OUTSIDE.finditer(content):
            yield name, content.count(b"\n", 0, match.start()) + 1, f"refers to {match.group().decode()}"
        if content.startswith(b"#!") and not os.access(root / name, os.X_OK):
            yield name, 1, "a script that is not executable: chmod +x"
        if name.as_posix() == "docs/design.md":
            for line, message in check_design(content.decode("utf-8", errors="replace"), directories):
                yield name, line, message
        if name.parts[0] == "include" and name.suffix not in {".hpp", ".cuh"}:
            yield name, 1, "include/ is headers alone: .hpp and .cuh"
        if name.suffix in SOURCES:
            text = content.decode("utf-8", errors="replace")
            head = "\n".join(text.split("\n")[:4])
            if not all(line in head for line in SPDX):
                yield name, 1, "expected the two SPDX lines at the top"
            if name.parts[0] == "include":
                header = name.relative_to("include")
                guarded = GUARDED.search(text)
                behind = [guarded[1]] if guarded else []
                includes[header.as_posix()] = (
                    [target for _, target in INCLUDE.findall(text)
                     if target.startswith("superoffload/") and target not in behind], behind)
                for line, message in itertools.chain(check_includes(header, text), check_streams(header, text),
                                                     check_sizes(text), check_functions(text)):
                    yield name, line, message
                if name.suffix in {".hpp", ".cuh"} and "#pragma once" not in text:
                    yield name, 1, "expected #pragma once"
    yield from check_circles(includes)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    violations = [f"{name}:{line}: {message}" for name, line, message in check(root)]
    print("\n".join(violations) or "includes, licences and references: no violation")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
