// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace superoffload::offload {

/// A set of numbers below a bound. The smallest and the largest are found quickly.
class index_set {
public:
  /// Empty, for numbers below `bound`.
  explicit index_set(std::size_t bound) : words_((bound + 63) / 64) {}

  /// @{
  /// `i` is below the bound. Inserting or erasing a number a second time does nothing.
  void insert(std::size_t i) { words_[i / 64] |= bit(i); }
  void erase(std::size_t i) { words_[i / 64] &= ~bit(i); }
  [[nodiscard]] bool contains(std::size_t i) const { return (words_[i / 64] & bit(i)) != 0; }
  /// @}

  /// The smallest number; none if the set is empty.
  [[nodiscard]] std::optional<std::size_t> first() const { return first_from(0); }
  /// The smallest number that is at least `least`.
  [[nodiscard]] std::optional<std::size_t> first_from(std::size_t least) const {
    auto mask = ~std::uint64_t{0} << (least % 64);
    for (std::size_t w = least / 64; w < words_.size(); ++w) {
      if (auto const found = words_[w] & mask; found != 0) {
        return 64 * w + static_cast<std::size_t>(std::countr_zero(found));
      }
      mask = ~std::uint64_t{0};
    }
    return std::nullopt;
  }
  /// The largest number; none if the set is empty.
  [[nodiscard]] std::optional<std::size_t> last() const {
    for (std::size_t w = words_.size(); w-- > 0;) {
      if (words_[w] != 0) {
        return 64 * w + 63 - static_cast<std::size_t>(std::countl_zero(words_[w]));
      }
    }
    return std::nullopt;
  }

private:
  static std::uint64_t bit(std::size_t i) { return std::uint64_t{1} << (i % 64); }

  std::vector<std::uint64_t> words_;
};

}  // namespace superoffload::offload
