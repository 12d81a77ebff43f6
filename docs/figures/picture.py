# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""What the scripts of this directory share: the frame of a picture, and writing or checking it."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def svg(width, height, style, lines):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
            f"<style>{style}</style>\n"
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n' + "\n".join(lines) + "\n</svg>\n")


def write_or_check(name, drawn, usage):
    """Writes docs/images/<name>.svg; with --check fails where it is not what was drawn now."""
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(usage)
    picture = ROOT / f"docs/images/{name}.svg"
    if sys.argv[1:]:
        if not picture.exists() or picture.read_text() != drawn:
            sys.exit(f"{picture.relative_to(ROOT)} is not what its script draws: run docs/figures/{name}.py")
        return
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_text(drawn)
