// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <string_view>

namespace superoffload::comm {

/// A group for code that has nothing to do with devices: a rank's number, and the ranks' communication on the
/// host. It is a single rank unless it is made from a communicator, which outlives it. A copy is the same
/// group.
class host_group {
public:
  host_group() = default;
  /// The ranks of a communicator, which must outlive this and its copies.
  template <class C>
  explicit host_group(C& group)
      : rank_{group.rank()},
        ranks_{group.ranks()},
        gather_{[&group](void const* from, void* to, std::size_t bytes) { group.gather(from, to, bytes); }},
        abort_{[&group](std::string_view reason) { group.abort(reason); }} {}

  [[nodiscard]] int rank() const noexcept { return rank_; }    ///< of this process or thread, from 0
  [[nodiscard]] int ranks() const noexcept { return ranks_; }  ///< 1 for a single one
  /// Is this rank 0, which writes files and messages?
  [[nodiscard]] bool is_first() const noexcept { return rank_ == 0; }

  /// As communicator::gather.
  void gather(void const* from, void* to, std::size_t bytes) const {
    if (gather_) {
      gather_(from, to, bytes);
    } else if (bytes != 0) {  // the address of zero bytes may be null
      std::memmove(to, from, bytes);
    }
  }
  /// As communicator::abort.
  void abort(std::string_view reason) const noexcept {
    if (abort_) {
      abort_(reason);
    }
  }

private:
  int rank_ = 0, ranks_ = 1;
  std::function<void(void const*, void*, std::size_t)> gather_;
  std::function<void(std::string_view)> abort_;
};

/// The ranks of an optional group: a single one where `group` is null.
template <class C>
[[nodiscard]] host_group host_group_of(C* group) {
  return group != nullptr ? host_group{*group} : host_group{};
}

}  // namespace superoffload::comm
