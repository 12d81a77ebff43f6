#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Draws a step with optimizer state in host memory, docs/images/step.svg: step.py [--check]

A sketch of three units, not a measurement: a run's own picture is what --timeline writes.
--check writes nothing and fails where the picture is not the one that this script draws.
"""

from picture import svg, write_or_check

WIDTH, LEFT, ROW, BOX = 860, 150, 46, 32
LANES = ["GPU", "gradients to host", "CPU Adam", "weights to GPU"]
FORWARD, BACKWARD, GRADIENT, ADAM, WEIGHT, CHECK = "#4c78a8", "#2f4b7c", "#f58518", "#54a24b", "#72b7b2", "#b279a2"

# lane, begin, end, color, text; times in units of a unit's forward pass
BOXES = [
    *[(0, i, i + 1, FORWARD, f"F{i + 1}") for i in range(3)],
    *[(0, 3 + 2 * i, 5 + 2 * i, BACKWARD, f"B{3 - i}") for i in range(3)],
    *[(1, 5 + 2 * i, 6.5 + 2 * i, GRADIENT, f"g{3 - i}") for i in range(3)],
    *[(2, 6.5 + 2 * i, 8.5 + 2 * i, ADAM, f"update {3 - i}") for i in range(2)],
    (2, 10.5, 12.5, ADAM, "update 1"),
    *[(3, 8.5 + 2 * i, 9.5 + 2 * i, WEIGHT, f"w{3 - i}") for i in range(2)],
    (3, 12.5, 13.5, WEIGHT, "w1"),
    (0, 10.5, 11.0, CHECK, ""),
    *[(0, 13.5 + i, 14.5 + i, FORWARD, f"F{i + 1}") for i in range(3)],
    (0, 16.5, 18.5, BACKWARD, "B3"),
    *[(2, 13.0 + 1.2 * i, 14.2 + 1.2 * i, "#a7d3a0", f"c{3 - i}") for i in range(3)],
]


def draw():
    lines = []
    top = 30
    for i, lane in enumerate(LANES):
        y = top + i * ROW
        lines.append(f'<text x="{LEFT - 12}" y="{y + 21}" class="lane">{lane}</text>')
        lines.append(f'<line x1="{LEFT}" y1="{y + BOX + 6}" x2="{WIDTH - 20}" y2="{y + BOX + 6}" stroke="#e5e7eb"/>')
    scale = (WIDTH - 20 - LEFT) / 18.5
    for lane, begin, end, color, text in BOXES:
        x, y = LEFT + begin * scale, top + lane * ROW
        lines.append(f'<rect x="{x + 1:.1f}" y="{y}" width="{(end - begin) * scale - 2:.1f}" height="{BOX}" rx="3" '
                     f'fill="{color}"/>')
        lines.append(f'<text x="{x + (end - begin) * scale / 2:.1f}" y="{y + 20}" class="box">{text}</text>')
    x = LEFT + 10.75 * scale
    lines.append(f'<line x1="{x:.1f}" y1="{top - 8}" x2="{x:.1f}" y2="{top + 4 * ROW - 8}" stroke="{CHECK}" '
                 'stroke-dasharray="4 3"/>')
    lines.append(f'<text x="{x:.1f}" y="{top - 12}" class="note">norm and overflow check of the whole gradient</text>')
    y = top + 4 * ROW + 18
    for sentence in (
            "F, B: forward and backward of a unit. The CPU updates a unit as soon as its gradient has arrived, before the "
            "check (speculation).",
            "If the check clips the step, its updates are computed a second time. Otherwise they are committed (c) beside the "
            "next forward.",
            "The next forward begins when the weights of its first unit are back on the GPU."):
        lines.append(f'<text x="20" y="{y}" class="legend">{sentence}</text>')
        y += 18
    style = ("text{font-family:sans-serif;fill:#1f2937}.lane{font-size:13px;text-anchor:end}.box{font-size:12px;"
             "text-anchor:middle;fill:#ffffff}.note{font-size:12px;text-anchor:middle}.legend{font-size:12px;"
             "fill:#4b5563}")
    return svg(WIDTH, y, style, lines)


if __name__ == "__main__":
    write_or_check("step", draw(), __doc__)
