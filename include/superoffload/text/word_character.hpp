// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace superoffload::text {

/// Whether `\w` matches `c` in regular expressions over Unicode: letters, marks, decimal digits, connectors
/// such as '_', joiners.
[[nodiscard]] bool is_word_character(char32_t c) noexcept;

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/word_character_inl.hpp>
#endif
