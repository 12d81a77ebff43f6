// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/membership.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>

#include <algorithm>

namespace superoffload::comm {

SUPEROFFLOAD_INLINE void membership::gather(void const* from, void* to, std::size_t bytes) {
  auto const most = piece_bytes(lane::host);
  call c{.what = call::kind::gather, .count = bytes, .number = on_host_++};
  c.note_range();
  auto const size = [&](std::uint64_t round) { return std::min(most, bytes - round * most); };
  exchange(
      lane::host, c, std::max<std::size_t>(1, (bytes + most - 1) / most),
      [&](std::byte* own, std::uint64_t round) {
        std::copy_n(static_cast<std::byte const*>(from) + round * most, size(round), own);
        return content{.bytes = size(round)};
      },
      [&](std::uint64_t round) {
        for (int r = 0; r < ranks_; ++r) {
          std::copy_n(run_of(lane::host, r), size(round),
                      static_cast<std::byte*>(to) + static_cast<std::size_t>(r) * bytes + round * most);
        }
      });
}

SUPEROFFLOAD_INLINE void membership::barrier() {
  call c{.what = call::kind::barrier, .number = on_host_++};
  c.note_range();
  compare(lane::host, c);
}

SUPEROFFLOAD_INLINE void membership::abort(std::string_view reason) noexcept {
  try {
    mark_failed(rank_, concat("failed: ", printable(reason, 400)));
  } catch (...) {  // no memory for the text
    mark_failed(rank_, "failed");
  }
}

}  // namespace superoffload::comm
