// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/communicator.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/policy.hpp>
#include <superoffload/kernel/elementwise.hpp>

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace superoffload::comm {

/// A group of one rank, which never waits.
template <device_policy D>
class single_communicator {
public:
  using stream = typename D::stream;  ///< whose tasks carry out the operations

  [[nodiscard]] static constexpr int rank() noexcept { return 0; }   ///< always 0
  [[nodiscard]] static constexpr int ranks() noexcept { return 1; }  ///< always 1

  /// A copy, unless it is in place.
  void queue(stream& on, all_gather const& a) {
    copy(on, a.to, a.from, static_cast<std::size_t>(a.runs) * a.bytes);
  }
  /// A copy.
  void queue(stream& on, all_to_all const& a) { copy(on, a.to, a.from, a.bytes); }
  /// A conversion to `To`, on the stream.
  template <element From, element To>
  void queue(stream& on, reduce_scatter<From, To> const& a) {
    launch(on, kernel::convert<From, To>{
                   .from = a.from, .to = a.to, .count = a.runs * a.count, .accumulate = a.accumulate});
  }
  /// 0: no operation needs scratch memory.
  template <element From, element To>
  [[nodiscard]] static constexpr std::size_t scratch_bytes(reduce_scatter<From, To> const&) noexcept {
    return 0;
  }

  /// Copies at once; `from` and `to` may overlap. \throws error(rank_failed) after abort().
  void gather(void const* from, void* to, std::size_t bytes) {
    check();
    if (bytes != 0) {  // the address of zero bytes may be null
      std::memmove(to, from, bytes);
    }
  }
  void barrier() { check(); }  ///< \throws error(rank_failed) after abort()
  /// From now on check(), gather() and barrier() throw with this reason; the first one counts.
  void abort(std::string_view reason) noexcept {
    if (!aborted_) {
      aborted_ = true;
      reason_ = reason;
    }
  }
  /// \throws error(rank_failed) after abort().
  void check() const {
    expect(!aborted_, exit_code::rank_failed, "rank 0 of 1 failed: ", printable(reason_));
  }

private:
  static void copy(stream& on, void* to, void const* from, std::size_t bytes) {
    if (to != from && bytes != 0) {
      on.copy(to, from, bytes);
    }
  }

  bool aborted_ = false;
  std::string reason_;
};

/// Names the kind of group for policies such as zero::sharded.
struct single {
  template <device_policy D>
  using communicator = single_communicator<D>;  ///< for device D
};

}  // namespace superoffload::comm
