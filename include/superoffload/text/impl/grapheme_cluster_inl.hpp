// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/text/cluster_classes.hpp>
#include <superoffload/text/utf8.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace superoffload::text::detail {

SUPEROFFLOAD_INLINE cluster_class cluster_class_of(char32_t c) {
  auto const after = std::ranges::upper_bound(cluster_classes, std::uint32_t{c} << 8 | 0xff);
  return static_cast<cluster_class>(*(after - 1) & 0xff);
}

/// What a cluster has ended with so far, as the rules of Unicode's UAX #29 need it.
class cluster_end {
public:
  explicit cluster_end(cluster_class first) { add(first); }

  /// Whether `next` belongs to the cluster; not for CR LF.
  [[nodiscard]] bool joins(cluster_class next) const {
    using enum cluster_class;
    if (last_ == control || next == control) {
      return false;
    }
    switch (next) {
      case extend:
      case conjunct_extend:
      case linker:
      case joiner:
      case spacing:
        return true;
      case consonant:
        return last_ == prepend || conjunct_ == part::linked;
      case pictographic:
        return last_ == prepend || picture_ == part::linked;
      case hangul_l:
      case hangul_lv:
      case hangul_lvt:
        return last_ == prepend || last_ == hangul_l;
      case hangul_v:
        return last_ == prepend || last_ == hangul_l || last_ == hangul_v || last_ == hangul_lv;
      case hangul_t:
        return last_ == prepend || last_ == hangul_v || last_ == hangul_t || last_ == hangul_lv ||
               last_ == hangul_lvt;
      default:
        return last_ == prepend;
    }
  }

  void add(cluster_class next) {
    using enum cluster_class;
    last_ = next;
    if (next == consonant) {
      conjunct_ = part::begun;
    } else if (next == linker && conjunct_ != part::none) {
      conjunct_ = part::linked;
    } else if (next != conjunct_extend && next != joiner) {
      conjunct_ = part::none;
    }
    if (next == pictographic) {
      picture_ = part::begun;
    } else if (next == joiner && picture_ == part::begun) {
      picture_ = part::linked;
    } else if ((next != extend && next != conjunct_extend && next != linker) || picture_ == part::linked) {
      picture_ = part::none;
    }
  }

private:
  /// Of a conjunct of consonants, or of pictures that are one: what comes next may belong to it where the
  /// last part was a link.
  enum class part : std::uint8_t { none, begun, linked };

  cluster_class last_ = cluster_class::other;
  part conjunct_ = part::none;
  part picture_ = part::none;
};

/// The bytes of the extended grapheme cluster (what a reader takes for one character) at the front of `text`,
/// which must not be empty.
SUPEROFFLOAD_INLINE std::size_t cluster_length(std::string_view text) {
  if (text.starts_with("\r\n")) {
    return 2;
  }
  auto const first = first_step(text);
  cluster_end end{cluster_class_of(first.code_point)};
  auto length = first.length;
  while (length < text.size()) {
    auto const step = first_step(text.substr(length));
    auto const next = cluster_class_of(step.code_point);
    if (!end.joins(next)) {
      break;
    }
    end.add(next);
    length += step.length;
  }
  return length;
}

}  // namespace superoffload::text::detail
