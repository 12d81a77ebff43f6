// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace superoffload::comm {

/// The sum over all ranks, in their order.
template <class Group, class Number>
[[nodiscard]] Number sum_over_ranks(Group& group, Number own) {
  std::vector<Number> all(static_cast<std::size_t>(group.ranks()));
  group.gather(&own, all.data(), sizeof own);
  Number sum{};
  for (auto const& of_one : all) { sum += of_one; }
  return sum;
}

/// Whether any rank says so: for what one of them has noticed and all must do.
template <class Group>
[[nodiscard]] bool on_any_rank(Group& group, bool own) {
  return sum_over_ranks(group, own ? 1 : 0) > 0;
}

/// Throws `error` (bad_input) on every rank, with one text, unless all have the same `value` for `what`, such
/// as "the learning rate". Of a long value its beginning is shown, and all of it compared.
template <class Group>
void expect_same(Group& group, std::string_view what, std::string_view value) {
  struct summary {
    std::uint64_t size = 0;
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: differences come by mistake, not by an enemy's hand
    std::array<char, 112> start{};

    bool operator==(summary const&) const = default;
  };
  summary own{.size = value.size()};
  for (char const c : value) { own.hash = (own.hash ^ static_cast<unsigned char>(c)) * 0x100000001b3; }
  std::copy_n(value.begin(), std::min(value.size(), own.start.size()), own.start.begin());
  std::vector<summary> all(static_cast<std::size_t>(group.ranks()));
  group.gather(&own, all.data(), sizeof own);
  auto const other = std::find_if(all.begin(), all.end(), [&](auto const& s) { return s != all.front(); });
  if (other != all.end()) {
    auto const shown = [](summary const& s) {
      return printable({s.start.data(), std::min<std::size_t>(s.size, s.start.size())});
    };
    fail(exit_code::bad_input, "ranks differ in ", what, ": rank 0 has '", shown(all.front()), "' (",
         all.front().size, " bytes), rank ", other - all.begin(), " has '", shown(*other), "' (", other->size,
         " bytes); expected the same on all");
  }
}

}  // namespace superoffload::comm
