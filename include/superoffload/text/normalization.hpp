// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace superoffload::text {

/// `text` in Unicode normalisation form C. `text` must be valid UTF-8. Time: n log n in its length.
std::string to_nfc(std::string_view text);

/// Whether a glance shows that `text` is in form C already; true for most Latin text, no promise when false.
[[nodiscard]] bool is_plainly_nfc(std::string_view text) noexcept;

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/normalization_inl.hpp>
#endif
