# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the rules of SentencePiece's normalizer in its format, which include/superoffload/text/charsmap.hpp describes."""

import base64
import struct


def charsmap(rules):
    """The blob for a dictionary from texts, or their bytes, to replacements."""
    replacements, begins, root = b"", {}, {}
    for text, replacement in rules.items():
        if replacement not in begins:
            begins[replacement] = len(replacements)
            replacements += replacement.encode() + b"\0"
        node = root
        for byte in text if isinstance(text, bytes) else text.encode():
            node = node.setdefault(byte, {})
        node[0] = begins[replacement]  # no text has a byte of 0

    units, used, bases = [0] * 256, {0}, set()

    def place(node, position):
        base = next(base for base in range(1, 1 << 20) if base not in bases and all(base ^ byte not in used for byte in node))
        bases.add(base)
        used.update(base ^ byte for byte in node)
        while len(units) <= base | 255:
            units.append(0)
        distance = position ^ base
        units[position] |= (distance << 10 if distance < 1 << 21 else distance >> 8 << 10 | 1 << 9) | (0 in node) << 8
        for byte, child in node.items():
            if byte == 0:
                units[base] = 1 << 31 | child
            else:
                units[base ^ byte] = byte
                place(child, base ^ byte)

    place(root, 0)
    return struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + replacements


def encoded(rules):
    return base64.b64encode(charsmap(rules)).decode()
