// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace superoffload::text {

/// Code points from the first to the last, both included.
struct code_point_range {
  std::uint32_t first = 0;  ///< at most `last`
  std::uint32_t last = 0;   ///< at most U+10FFFF

  /// Whether both ends are the same.
  friend constexpr bool operator==(code_point_range, code_point_range) = default;
};

/// A set of code points: ranges in order that neither overlap nor touch.
class code_point_set {
public:
  code_point_set() = default;  ///< the empty set

  /// The union of `ranges`, which may overlap and may be in any order.
  explicit code_point_set(std::vector<code_point_range> ranges) : ranges_{std::move(ranges)} {
    std::ranges::sort(ranges_, {}, &code_point_range::first);
    std::size_t kept = 0;
    for (auto const range : ranges_) {
      if (kept > 0 && range.first <= ranges_[kept - 1].last + 1) {
        ranges_[kept - 1].last = std::max(ranges_[kept - 1].last, range.last);
      } else {
        ranges_[kept++] = range;
      }
    }
    ranges_.resize(kept);
  }

  /// @{
  /// Sets of this set and another one.
  [[nodiscard]] code_point_set united(code_point_set const& other) const {
    auto both = ranges_;
    both.insert(both.end(), other.ranges_.begin(), other.ranges_.end());
    return code_point_set{std::move(both)};
  }
  [[nodiscard]] code_point_set complement() const {
    code_point_set rest;
    std::uint32_t next = 0;
    for (auto const range : ranges_) {
      if (next < range.first) {
        rest.ranges_.push_back({next, range.first - 1});
      }
      next = range.last + 1;
    }
    if (next <= 0x10ffff) {
      rest.ranges_.push_back({next, 0x10ffff});
    }
    return rest;
  }
  [[nodiscard]] code_point_set shared(code_point_set const& other) const {
    return complement().united(other.complement()).complement();
  }
  /// @}

  /// The ranges, in order.
  [[nodiscard]] std::span<code_point_range const> ranges() const noexcept { return ranges_; }

private:
  std::vector<code_point_range> ranges_;
};

/// A set that answers at once for the first two planes, and by a search for the others.
class code_point_table {
public:
  /// The set of `ranges`, in order and apart.
  explicit code_point_table(std::span<code_point_range const> ranges) {
    for (auto const range : ranges) {
      auto const end = std::min<std::uint32_t>(range.last + 1, 32 * static_cast<std::uint32_t>(bits_.size()));
      for (auto c = range.first; c < end; ++c) { bits_[c / 32] |= 1u << c % 32; }
      if (range.last >= 32 * bits_.size()) {
        others_.push_back(range);
      }
    }
  }

  /// Whether `c` is in the set.
  [[nodiscard]] bool operator[](char32_t c) const noexcept {
    if (c < 32 * bits_.size()) {
      return (bits_[c / 32] >> c % 32 & 1) != 0;
    }
    auto const found = std::ranges::lower_bound(others_, std::uint32_t{c}, {}, &code_point_range::last);
    return found != others_.end() && found->first <= c;
  }

private:
  std::array<std::uint32_t, 0x20000 / 32> bits_{};
  std::vector<code_point_range> others_;
};

}  // namespace superoffload::text
