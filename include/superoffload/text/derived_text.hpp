// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/text/byte_alphabet.hpp>
#include <superoffload/text/utf8.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::text {

/// A text that was made from another one. Where it is traced, it knows for each of its bytes which character
/// of the other one it came from.
class derived_text {
public:
  /// Nothing yet. \param traced whether to note where text comes from
  explicit derived_text(bool traced) : traced_{traced} {}

  /// A copy of `source`, whose characters come from themselves.
  derived_text(std::string_view source, bool traced) : text_{source}, traced_{traced} {
    if (!traced) {
      return;
    }
    origins_.reserve(source.size());
    for (std::size_t at = 0; at < source.size();) {
      auto const length = first_step(source.substr(at)).length;
      origins_.insert(origins_.end(), length, static_cast<std::uint32_t>(at));
      at += length;
    }
  }

  [[nodiscard]] std::string_view text() const noexcept { return text_; }  ///< valid until a change
  [[nodiscard]] bool traced() const noexcept { return traced_; }          ///< whether origin() has an answer

  /// The byte of the other text where the character begins that byte `at` came from; 0 where it is not
  /// traced.
  [[nodiscard]] std::size_t origin(std::size_t at) const noexcept {
    return traced_ && at < origins_.size() ? origins_[at] : 0;
  }

  /// @{
  /// Adds text that came from the character at `origin`, or bytes [begin, end) of `other`.
  void append(std::string_view text, std::size_t origin) {
    text_ += text;
    if (traced_) {
      origins_.insert(origins_.end(), text.size(), static_cast<std::uint32_t>(origin));
    }
  }
  void append(derived_text const& other, std::size_t begin, std::size_t end) {
    text_.append(other.text_, begin, end - begin);
    if (traced_) {
      origins_.insert(origins_.end(), other.origins_.begin() + static_cast<std::ptrdiff_t>(begin),
                      other.origins_.begin() + static_cast<std::ptrdiff_t>(end));
    }
  }
  /// @}

  /// The same for the bytes as letters of byte_alphabet.hpp.
  void append_letters(derived_text const& other, std::size_t begin, std::size_t end) {
    for (auto at = begin; at < end; ++at) {
      append(to_byte_alphabet(other.text().substr(at, 1)), other.origin(at));
    }
  }

private:
  std::string text_;
  std::vector<std::uint32_t> origins_;  // by byte; empty where it is not traced
  bool traced_;
};

}  // namespace superoffload::text
