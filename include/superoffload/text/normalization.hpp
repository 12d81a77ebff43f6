// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace superoffload::text {

/// `text` in Unicode normalisation form C. `text` must be valid UTF-8. Time: n log n in its length.
std::string to_nfc(std::string_view text);

/// A quick check for form C: true for most Latin text; false means unknown.
[[nodiscard]] bool is_plainly_nfc(std::string_view text) noexcept;

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/normalization_inl.hpp>
#endif
