// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace superoffload {

namespace detail {
struct range_text {
  std::array<char, 96> text;
  std::size_t size;

  void append(std::string_view more) noexcept {
    auto const n = std::min(more.size(), text.size() - size);
    std::copy_n(more.data(), n, text.data() + size);
    size += n;
  }
};
inline thread_local range_text current_range{};
}  // namespace detail

/// Notes what the calling thread queues on a device from here on, such as "backward of " "model.norm". A
/// device runs behind the calls that queue its work, so an error surfaces in an unrelated call: the last
/// range says more. Costs a copy of some bytes; text beyond 96 bytes is cut.
inline void enter_range(std::string_view what, std::string_view of = {}) noexcept {
  detail::current_range.size = 0;
  detail::current_range.append(what);
  detail::current_range.append(of);
}

/// The arguments of this thread's last enter_range, joined; empty before the first. Valid until the next
/// call.
[[nodiscard]] inline std::string_view last_range() noexcept {
  return {detail::current_range.text.data(), detail::current_range.size};
}

}  // namespace superoffload
