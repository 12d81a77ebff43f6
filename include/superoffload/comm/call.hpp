// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/division.hpp>
#include <superoffload/core/dtype.hpp>

#include <cstdint>
#include <string>

namespace superoffload::comm {

/// A rank's call in a lane; every other rank must make the same one.
struct call {
  /// none: no call yet. all_gather, all_to_all and reduce_scatter are queued on streams; gather and barrier
  /// run on the host.
  enum class kind : std::uint8_t { none, all_gather, all_to_all, reduce_scatter, gather, barrier };
  kind what = kind::none;    ///< none: no call has been made
  dtype from = dtype::u8;    ///< u8: bytes
  dtype to = dtype::u8;      ///< of reduce_scatter only
  bool accumulates = false;  ///< of reduce_scatter only
  division among{};          ///< the ranks that join; all in gather and barrier
  int runs = 1;              ///< of `count` elements
  std::uint64_t count = 0;   ///< of elements of `from`
  std::uint64_t number = 0;  ///< of earlier calls in this lane
  char where[72] = {};       ///< the caller's last range, cut

  /// Whether both are the same operation, in whatever range.
  [[nodiscard]] bool same_as(call const& other) const noexcept {
    return what == other.what && from == other.from && to == other.to && accumulates == other.accumulates &&
           among == other.among && runs == other.runs && count == other.count && number == other.number;
  }
  /// A text such as "reduce_scatter of 65536 BF16 to F32 (call 12, in backward of model.layers.3)".
  [[nodiscard]] std::string text() const;
  /// Notes the calling thread's last range.
  void note_range() noexcept;
};

}  // namespace superoffload::comm

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/comm/impl/call_inl.hpp>
#endif
