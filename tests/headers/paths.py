# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""paths.py INCLUDE HEADER...: paths of headers, one a line, separated by blanks, that together have each HEADER once. In a
path each header includes the one before it, itself or through others. A source that includes a path in its order checks each
header as one that includes it alone: what came before is what this header includes anyway, above its first declaration.

The paths are as few as possible (a minimum path cover of the includes, by a maximum matching)."""

import pathlib
import re
import sys


def includes_of(text):
    """What a header includes whatever is defined."""
    depth = 0
    found = []
    for line in text.splitlines():
        if re.match(r"#\s*if", line):
            depth += 1
        elif re.match(r"#\s*endif", line):
            depth -= 1
        elif depth == 0 and (include := re.match(r"#\s*include <(.+)>", line)):
            found.append(include[1])
    return found


def reachable(headers, include):
    """For each header, all that it includes, itself or through others."""
    closures = {}

    def visit(header):
        if header not in closures:
            closures[header] = set()
            path = include / header
            direct = includes_of(path.read_text(encoding="utf-8")) if path.exists() else []
            closures[header] = set(direct).union(*(visit(other) for other in direct))
        return closures[header]

    for header in headers:
        visit(header)
    return closures


def cover(headers, include):
    closures = reachable(headers, include)
    includers = {header: [] for header in headers}
    for header in sorted(headers, key=lambda header: len(closures[header])):
        for included in closures[header].intersection(includers):
            includers[included].append(header)

    before = {}  # of the headers that are not the first of their path

    def extend(header, tried):
        """Kuhn's algorithm: finds a successor, for whose sake others may change theirs."""
        for includer in includers[header]:
            if includer not in tried:
                tried.add(includer)
                if includer not in before or extend(before[includer], tried):
                    before[includer] = header
                    return True
        return False

    for header in sorted(headers):
        extend(header, set())

    after = {earlier: later for later, earlier in before.items()}
    for header in sorted(set(headers) - set(before)):
        path = [header]
        while path[-1] in after:
            path.append(after[path[-1]])
        yield path


def main():
    include, *headers = sys.argv[1:]
    sys.setrecursionlimit(len(headers) + 1000)
    for path in cover(headers, pathlib.Path(include)):
        print(*path)


if __name__ == "__main__":
    main()
