// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/device.hpp>
#include <superoffload/core/dtype.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace superoffload::offload {

/// Is the low half of a master kept beside its working weight T? For bfloat16 yes; a float is the master
/// itself.
template <element T>
inline constexpr bool splits_master = std::is_same_v<T, bfloat16>;

namespace detail {
/// Works in pieces, so that temporary host memory stays small. A thread keeps its own: new pages would cost
/// more time than the copies.
template <class Piece>
void in_pieces(std::size_t count, Piece const& piece) {
  constexpr std::size_t largest = std::size_t{1} << 20;
  static thread_local std::vector<bfloat16> weights;
  static thread_local std::vector<std::uint16_t> low;
  weights.resize(std::max(weights.size(), std::min(count, largest)));
  low.resize(weights.size());
  for (std::size_t done = 0; done < count; done += largest) {
    auto const n = std::min(largest, count - done);
    piece(done, std::span{weights}.first(n), std::span{low}.first(n));
  }
}
}  // namespace detail

/// Reads masters from working weights and their low halves (null for float), in any memory that the stream
/// can copy. Waits for the stream.
template <class Stream, element T>
void read_masters(Stream& stream, T const* weights, std::uint16_t const* low, std::span<float> to) {
  if constexpr (splits_master<T>) {
    detail::in_pieces(to.size(), [&](std::size_t done, std::span<bfloat16> w, std::span<std::uint16_t> l) {
      drain_at_end const drained{stream};
      stream.copy(w.data(), weights + done, w.size_bytes());
      stream.copy(l.data(), low + done, l.size_bytes());
      stream.synchronize();
      for (std::size_t i = 0; i < l.size(); ++i) { to[done + i] = bfloat16::master_of(w[i], l[i]); }
    });
  } else {
    stream.copy(to.data(), weights, to.size_bytes());
    stream.synchronize();
  }
}

/// Writes masters to working weights and their low halves. Waits for the stream.
template <class Stream, element T>
void write_masters(Stream& stream, T* weights, std::uint16_t* low, std::span<float const> from) {
  if constexpr (splits_master<T>) {
    detail::in_pieces(from.size(), [&](std::size_t done, std::span<bfloat16> w, std::span<std::uint16_t> l) {
      for (std::size_t i = 0; i < l.size(); ++i) {
        w[i] = bfloat16::of_master(from[done + i]);
        l[i] = bfloat16::low_of_master(from[done + i]);
      }
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

}  // namespace superoffload::offload
