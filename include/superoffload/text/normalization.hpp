// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/text/derived_text.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace superoffload::text {

/// Unicode's normalisation forms, with the characters up to Unicode 9.0, as in Hugging Face tokenizers: later
/// ones stay as they are, whatever the system's libraries know.
enum class normalization_form : std::uint8_t { nfc, nfd, nfkc, nfkd };

/// `text` in a form. `text` must be valid UTF-8. Time: n log n in its length.
std::string to_form(std::string_view text, normalization_form form);

/// The same, and where each character came from: the begin of the characters that became others together.
derived_text to_form(derived_text const& text, normalization_form form);

/// `text` in form C.
std::string to_nfc(std::string_view text);

/// A quick check for form C: true for most Latin text; false means unknown.
[[nodiscard]] bool is_plainly_nfc(std::string_view text) noexcept;

/// Appends the lower case of `c`: one character, but for U+0130, which has two.
void append_lower_case(std::string& out, char32_t c);

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/normalization_inl.hpp>
#endif
