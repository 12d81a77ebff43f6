// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/current_error.hpp>
#include <superoffload/core/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::comm {

/// An error that every rank of a group throws with the same text, so that only rank 0 needs to print it.
class agreed_error : public error {
public:
  /// `is_first`: is this rank 0, which prints the message?
  agreed_error(exit_code code, std::string const& message, bool is_first)
      : error{code, message}, is_first_{is_first} {}
  [[nodiscard]] bool is_first() const noexcept { return is_first_; }  ///< whether this is rank 0

private:
  bool is_first_;
};

/// The sum over all ranks, in their order.
template <class Group, class Number>
[[nodiscard]] Number sum_over_ranks(Group& group, Number own) {
  std::vector<Number> all(static_cast<std::size_t>(group.ranks()));
  group.gather(&own, all.data(), sizeof own);
  Number sum{};
  for (auto const& of_one : all) { sum += of_one; }
  return sum;
}

/// Whether the condition holds on any rank.
template <class Group>
[[nodiscard]] bool on_any_rank(Group& group, bool own) {
  return sum_over_ranks(group, own ? 1 : 0) > 0;
}

/// The largest value of all ranks.
template <class Group, class Number>
[[nodiscard]] Number max_over_ranks(Group& group, Number own) {
  std::vector<Number> all(static_cast<std::size_t>(group.ranks()));
  group.gather(&own, all.data(), sizeof own);
  return *std::max_element(all.begin(), all.end());
}

/// Whether the condition holds on all ranks.
template <class Group>
[[nodiscard]] bool on_all_ranks(Group& group, bool own) {
  return sum_over_ranks(group, own ? 1 : 0) == group.ranks();
}

/// The texts of all ranks, in order of rank.
template <class Group>
[[nodiscard]] std::vector<std::string> gather_texts(Group& group, std::string_view own) {
  auto const ranks = static_cast<std::size_t>(group.ranks());
  std::uint64_t const size = own.size();
  std::vector<std::uint64_t> sizes(ranks);
  group.gather(&size, sizes.data(), sizeof size);
  auto const most = *std::max_element(sizes.begin(), sizes.end());
  std::vector<char> mine(most);
  std::copy(own.begin(), own.end(), mine.begin());
  std::vector<char> all(most * ranks);
  group.gather(mine.data(), all.data(), most);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < ranks; ++r) { texts.emplace_back(all.data() + r * most, sizes[r]); }
  return texts;
}

/// Runs `work`, which must not communicate. If it threw on any rank, throws the error of the first such rank
/// on every rank.
template <class Group, class Work>
void together(Group& group, Work&& work) {
  std::string reason;
  int code = 0;
  try {
    work();
  } catch (std::exception const&) {
    auto const e = current_error();
    reason = e.what();
    code = static_cast<int>(e.code());
  }
  std::vector<int> codes(static_cast<std::size_t>(group.ranks()));
  group.gather(&code, codes.data(), sizeof code);
  auto const failed = std::find_if(codes.begin(), codes.end(), [](int c) { return c != 0; });
  if (failed == codes.end()) {
    return;
  }
  auto const first = failed - codes.begin();
  auto const texts = gather_texts(group, reason);
  throw agreed_error{
      static_cast<exit_code>(*failed),
      (first == 0 ? std::string{} : concat("rank ", first, ": ")) + texts[static_cast<std::size_t>(first)],
      group.rank() == 0};
}

/// Throws `agreed_error` (bad_input) on every rank, with one text, unless all have the same `value` for
/// `what`, such as "the learning rate". The whole value is compared; the message shows the beginning of a
/// long one.
template <class Group>
void expect_same(Group& group, std::string_view what, std::string_view value) {
  struct summary {
    std::uint64_t size = 0;
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: differences are mistakes, not attacks
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
    throw agreed_error{exit_code::bad_input,
                       concat("ranks differ in ", what, ": rank 0 has '", shown(all.front()), "' (",
                              all.front().size, " bytes), rank ", other - all.begin(), " has '",
                              shown(*other), "' (", other->size, " bytes); expected the same on all"),
                       group.rank() == 0};
  }
}

}  // namespace superoffload::comm
