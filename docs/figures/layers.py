#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the directories of the library as layers, docs/images/layers.svg, from the table that tests/architecture/check.py
holds every include to: layers.py [--check]

--check writes nothing and fails where the picture is not the one that this table gives.
"""

import runpy

from picture import ROOT, svg, write_or_check

WIDTH, BOX, GAP, STEP = 860, 54, 14, 84
COLORS = {"core": "#e5e7eb", "kernel": "#e5e7eb", "io": "#d9f0dd", "text": "#d9f0dd", "data": "#d9f0dd",
          "cpu": "#fde8cf", "cuda": "#fde8cf", "cudnn": "#fde8cf", "comm": "#f3d9ea", "nccl": "#f3d9ea", "mpi": "#f3d9ea",
          "autograd": "#dbe7fb", "nn": "#dbe7fb", "model": "#dbe7fb", "optim": "#e6dffa", "zero": "#e6dffa",
          "offload": "#e6dffa", "train": "#fdf3c4", "cli": "#fdf3c4"}
LEGEND = {"common": "#e5e7eb", "files, text, data": "#d9f0dd", "devices": "#fde8cf", "ranks": "#f3d9ea",
          "models": "#dbe7fb", "optimizer state and shards": "#e6dffa", "training": "#fdf3c4"}


def levels(allowed):
    """Directories by the longest chain of includes below them."""
    def level(name):
        return 1 + max((level(below) for below in allowed[name].split()), default=-1)
    rows = {}
    for name in allowed:
        rows.setdefault(level(name), []).append(name)
    return [rows[i] for i in sorted(rows, reverse=True)]


def direct(name, allowed):
    """What `name` includes that nothing else that it includes does include."""
    below = allowed[name].split()
    return [one for one in below if not any(one in allowed[other].split() for other in below if other != one)]


def draw(allowed):
    lines, y = [], 20
    for row in levels(allowed):
        width = (WIDTH - 40 - GAP * (len(row) - 1)) / len(row)
        width = min(width, 260)
        x = (WIDTH - len(row) * width - GAP * (len(row) - 1)) / 2
        for name in row:
            lines.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BOX}" rx="6" fill="{COLORS[name]}" '
                         'stroke="#6b7280"/>')
            lines.append(f'<text x="{x + width / 2:.1f}" y="{y + 23}" class="name">{name}</text>')
            on = ", ".join(direct(name, allowed))
            lines.append(f'<text x="{x + width / 2:.1f}" y="{y + 42}" class="on">{"on " + on if on else ""}</text>')
            x += width + GAP
        y += STEP
    x = 20
    for meaning, color in LEGEND.items():
        lines.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{color}" stroke="#6b7280"/>')
        lines.append(f'<text x="{x + 18}" y="{y + 11}" class="legend">{meaning}</text>')
        x += 40 + 7 * len(meaning)
    height = y + 32
    style = ("text{font-family:sans-serif;fill:#1f2937}.name{font-size:16px;font-weight:bold;text-anchor:middle}"
             ".on{font-size:11px;text-anchor:middle;fill:#4b5563}.legend{font-size:12px}")
    return svg(WIDTH, height, style, lines)


if __name__ == "__main__":
    write_or_check("layers", draw(runpy.run_path(str(ROOT / "tests/architecture/check.py"))["ALLOWED"]), __doc__)
