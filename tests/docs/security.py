#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Holds SECURITY.md to the tests: security.py

What it says under "What holds" are rows of tables, a sentence and the tests that hold it, as "`file`: name" with
semicolons between them. Each of these tests exists, and no sentence there is outside of a table.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ["sentence", "tests"]
INTRODUCTION = re.compile(r"Each sentence is held by the tests beside it\. `tests/docs/security\.py` checks that these exist\.")
CASE = re.compile(r'\bTEST_CASE(?:_TEMPLATE)?\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')


def cases_of(text):
    """The names of the test cases of a source."""
    for literals in CASE.findall(text):
        yield "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace('\\"', '"')


def tests_of(cell):
    """(file, name) of each test of a cell. A name may have semicolons."""
    parts = re.split(r"(?:^|; )`([^`]+)`: ", cell)
    return [(parts[0], "")] if parts[0] else list(zip(parts[1::2], parts[2::2]))


def findings(text, cases):
    """What is wrong with the text of SECURITY.md. `cases`: the names of a file's test cases; None: no such file."""
    section = re.search(r"^## What holds\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if not section:
        yield "there is no section 'What holds'"
        return
    sentences, header = 0, None
    for line in INTRODUCTION.sub("", section[1]).split("\n"):
        if not line.strip() or line.startswith("### "):
            header = None
        elif not line.startswith("|"):
            yield f"a sentence without a test: {line}"
        elif header is None:
            header = [cell.strip() for cell in line.strip("|").split("|")]
            if header != TABLE:
                yield f"a table of {header}, expected {TABLE}"
        elif not set(line) <= set("|-"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            sentences += 1
            if len(cells) != 2 or not re.fullmatch(r"[^.]+(?:\.\w[^.]*)*\.", cells[0]):
                yield f"expected one sentence and its tests: {line}"
                continue
            tests = tests_of(cells[1])
            if not tests:
                yield f"no test holds: {cells[0]}"
            for file, name in tests:
                known = cases(file)
                if known is None:
                    yield f"{file} does not exist; it should hold: {cells[0]}"
                elif name not in known:
                    yield f"{file} has no test '{name}'; it should hold: {cells[0]}"
    if sentences == 0:
        yield "there are no sentences under 'What holds'"


def cases_in(file):
    path = ROOT / file
    return set(cases_of(path.read_text(encoding="utf-8"))) if path.is_file() else None


def check_itself():
    """What must be found in a wrong text is found."""
    table = "## What holds\n\n| sentence | tests |\n|---|---|\n"
    good = table + "| A file is read. | `a.cpp`: one; `b.cpp`: two; three |\n"
    source = 'TEST_CASE("on"\n    "e") {}\nTEST_CASE_TEMPLATE("two; three", T, int) {}\nTEST_CASE("says \\"no\\"") {}\n'
    assert list(cases_of(source)) == ["one", "two; three", 'says "no"']

    def known(file):
        return {"a.cpp": {"one"}, "b.cpp": {"two; three"}}.get(file)

    assert not list(findings(good, known))
    for wrong in ("", "## What holds\n", good.replace(": one", ": another"), good.replace("b.cpp", "c.cpp"),
                  good + "\nA sentence without a test.\n", table + "| A file is read. | |\n",
                  table + "| A file is read. | a test |\n", table + "| One. Two. | `a.cpp`: one |\n",
                  good.replace("tests |\n|-", "reasons |\n|-")):
        assert list(findings(wrong, known)), wrong


def main():
    check_itself()
    wrong = [f"SECURITY.md: {finding}" for finding in findings((ROOT / "SECURITY.md").read_text(encoding="utf-8"), cases_in)]
    print("\n".join(wrong) or "each sentence of SECURITY.md has its tests")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
