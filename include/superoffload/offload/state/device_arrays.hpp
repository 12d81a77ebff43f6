// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/offload/state/state_arrays.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// Values of state arrays in any memory that a stream can copy. Every call waits for the stream.
namespace superoffload::offload {

namespace detail {
/// Works in pieces, so that temporary host memory stays small. A thread keeps its own: new pages would cost
/// more time than the copies.
template <class Low, class Piece>
void in_pieces(std::size_t count, Piece const& piece) {
  constexpr std::size_t largest = std::size_t{1} << 20;
  static thread_local std::vector<bfloat16> weights;
  static thread_local std::vector<Low> low;
  weights.resize(std::max(weights.size(), std::min(count, largest)));
  low.resize(weights.size());
  for (std::size_t done = 0; done < count; done += largest) {
    auto const n = std::min(largest, count - done);
    piece(done, std::span{weights}.first(n), std::span{low}.first(n));
  }
}
}  // namespace detail

/// @{
/// Masters from, and to, working weights and what is kept beside them (null for float).
template <class Stream, element T, class Low>
void read_masters(Stream& stream, T const* weights, Low const* low, std::span<float> to) {
  if constexpr (splits_master<T>) {
    detail::in_pieces<Low>(to.size(), [&](std::size_t done, std::span<bfloat16> w, std::span<Low> l) {
      drain_at_end const drained{stream};
      stream.copy(w.data(), weights + done, w.size_bytes());
      stream.copy(l.data(), low + done, l.size_bytes());
      stream.synchronize();
      for (std::size_t i = 0; i < l.size(); ++i) { to[done + i] = master_of(w[i], l[i]); }
    });
  } else {
    stream.copy(to.data(), weights, to.size_bytes());
    stream.synchronize();
  }
}
template <class Stream, element T, class Low>
void write_masters(Stream& stream, T* weights, Low* low, std::span<float const> from) {
  if constexpr (splits_master<T>) {
    detail::in_pieces<Low>(from.size(), [&](std::size_t done, std::span<bfloat16> w, std::span<Low> l) {
      for (std::size_t i = 0; i < l.size(); ++i) { split(from[done + i], w[i], l[i]); }
      drain_at_end const drained{stream};
      stream.copy(weights + done, w.data(), w.size_bytes());
      stream.copy(low + done, l.data(), l.size_bytes());
      stream.synchronize();
    });
  } else {
    stream.copy(weights, from.data(), from.size_bytes());
    stream.synchronize();
  }
}
/// @}

namespace detail {
/// Calls work(arrays, first) with a copy on the host of the part of `moments` that holds elements [first,
/// first + count), whose first element of interest has index `first` there. Copies it back if `writes`.
template <state_format F, class Stream, class Work>
void with_copy(Stream& stream, kernel::moments<F> moments, std::int64_t first, std::size_t count, bool writes,
               Work const& work) {
  auto const copied = [&](auto* from, auto& to) { stream.copy(to.data(), from, to.size() * sizeof(to[0])); };
  auto const copied_back = [&](auto* to, auto const& from) {
    stream.copy(to, from.data(), from.size() * sizeof(from[0]));
  };
  if constexpr (F == state_format::int8) {
    auto const begin = first / kernel::state_block * kernel::state_block;
    auto const end = (first + static_cast<std::int64_t>(count) + kernel::state_block - 1) /
                     kernel::state_block * kernel::state_block;
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(end - begin)),
        exponents(codes.size() / kernel::state_block);
    drain_at_end const drained{stream};
    auto const there = moments + begin;
    copied(there.codes, codes);
    copied(there.exponents, exponents);
    stream.synchronize();
    work(kernel::block_codes{codes.data(), exponents.data()}, first - begin);
    if (writes) {
      copied_back(there.codes, codes);
      copied_back(there.exponents, exponents);
      stream.synchronize();
    }
  } else {
    std::vector<std::remove_pointer_t<kernel::moments<F>>> values(count);
    drain_at_end const drained{stream};
    if (!writes) {
      copied(moments + first, values);
      stream.synchronize();
    }
    work(values.data(), std::int64_t{0});
    if (writes) {
      copied_back(moments + first, values);
      stream.synchronize();
    }
  }
}
}  // namespace detail

/// @{
/// Elements [first, first + size) of a moment.
template <state_format F, class Stream>
void read_moment(Stream& stream, kernel::moments<F> from, state_part part, std::int64_t first,
                 std::span<float> to) {
  detail::with_copy<F>(stream, from, first, to.size(), false,
                       [&](kernel::moments<F> copy, std::int64_t at) { read_moment<F>(copy, part, at, to); });
}
template <state_format F, class Stream>
void write_moment(Stream& stream, kernel::moments<F> to, state_part part, std::int64_t first,
                  std::span<float const> from) {
  detail::with_copy<F>(stream, to, first, from.size(), true, [&](kernel::moments<F> copy, std::int64_t at) {
    write_moment<F>(copy, part, at, from);
  });
}
/// @}

}  // namespace superoffload::offload
