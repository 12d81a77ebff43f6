#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Writes include/superoffload/text/character_ranges.hpp: character_ranges.py > HEADER

The data are those of Python's unicodedata, from version 3.14, or of the package unicodedata2==16.0.0. The version is
that of the regular expressions in Hugging Face tokenizers 0.23 (Oniguruma 6.9.10).
"""

import sys

try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata

VERSION = "16.0.0"
# As in character_class.hpp.
NAMES = ("other", "upper", "lower", "letter", "mark", "digit", "numeral", "connector", "space", "newline")
CLASSES = {"Lu": "upper", "Lt": "upper", "Ll": "lower", "Lm": "letter", "Lo": "letter",
           "Mn": "mark", "Mc": "mark", "Me": "mark", "Nd": "digit", "Nl": "digit", "No": "numeral",
           "Pc": "connector", "Zs": "space", "Zl": "space", "Zp": "space"}
CONTROLS = {"\t": "space", "\n": "newline", "\v": "space", "\f": "space", "\r": "newline", "\x85": "space"}


def class_of(character):
    return CONTROLS.get(character) or CLASSES.get(unicodedata.category(character), "other")


def main():
    if unicodedata.unidata_version != VERSION:
        sys.exit(f"Unicode {unicodedata.unidata_version} is here, {VERSION} is wanted: pip install unicodedata2=={VERSION}")
    starts = []
    last = None
    for code_point in range(sys.maxunicode + 1):
        kind = NAMES.index(class_of(chr(code_point)))
        if kind != last:
            starts.append(f"0x{code_point << 4 | kind:x}")
        last = kind
    print(f"""\
// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// Made by tests/text/character_ranges.py.
#pragma once

#include <array>
#include <cstdint>

namespace superoffload::text {{

/// Unicode {VERSION}: code_point << 4 | character_class, each for the code points up to the next entry.
// clang-format off
inline constexpr std::array<std::uint32_t, {len(starts)}> character_ranges{{""")
    line = ""
    for start in starts:
        if len(line) + len(start) > 105:
            print("    " + line.rstrip())
            line = ""
        line += start + ", "
    print("    " + line.rstrip(", ") + "};")
    print("""\
// clang-format on

}  // namespace superoffload::text""")


if __name__ == "__main__":
    main()
