// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/operations.hpp>
#include <superoffload/core/device.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <string_view>

namespace superoffload::comm {

/// One rank of a group that computes together.
/// 1. queue(stream, operation): the operations of operations.hpp, in the order of the stream. They run in the
///    order of the calls: a caller that uses several streams orders them by events;
/// 2. scratch_bytes(reduce_scatter): device memory that the operation needs beside its arrays;
/// 3. gather(from, to, bytes) and barrier(): an all-gather of some bytes in ordinary memory, and one of no
///    bytes. They run at once, apart from what is queued. For counts and agreements, not for tensors. One
///    thread at a time;
/// 4. abort(reason): this rank cannot go on; every wait of the other ranks fails, now or later;
/// 5. check(): throws when a rank has aborted.
///
/// When a rank ends, fails, makes another call than the others or does not come within the group's patience,
/// all other ranks stop waiting: `check`, `gather`, `barrier` and the waiting stream fail with an `error`
/// (rank_failed) that names the rank and the reason. A communicator outlives the work that is queued with it;
/// its destructor tells the others that its rank has left.
template <class C, class D>
concept communicator =
    device_policy<D> && requires(C& group, C const& same, typename D::stream& stream, void const* from,
                                 void* to, std::size_t bytes, std::string_view reason) {
      { same.rank() } -> std::same_as<int>;
      { same.ranks() } -> std::same_as<int>;
      group.queue(stream, all_gather{});
      group.queue(stream, all_to_all{});
      group.queue(stream, reduce_scatter<float>{});
      group.queue(stream, reduce_scatter<bfloat16>{});
      group.queue(stream, reduce_scatter<bfloat16, float>{});
      group.queue(stream, reduce_scatter<float, bfloat16>{});
      { same.scratch_bytes(reduce_scatter<bfloat16, float>{}) } -> std::same_as<std::size_t>;
      group.gather(from, to, bytes);
      group.barrier();
      { group.abort(reason) } noexcept;
      group.check();
    };

/// Aborts the group when an exception leaves its scope, before objects outside of the scope are destroyed:
/// their streams would wait for ranks that wait for this one.
template <class C>
class abort_on_exception {
public:
  /// The group must outlive the scope.
  explicit abort_on_exception(C& group) noexcept : group_{&group} {}
  abort_on_exception(abort_on_exception const&) = delete;
  abort_on_exception& operator=(abort_on_exception const&) = delete;
  ~abort_on_exception() {
    if (std::uncaught_exceptions() > before_) {
      group_->abort("an exception ended its work");
    }
  }

private:
  C* group_;
  int before_ = std::uncaught_exceptions();
};

}  // namespace superoffload::comm
