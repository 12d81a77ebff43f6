// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/function_ref.hpp>
#include <superoffload/core/memory_account.hpp>
#include <superoffload/core/numa.hpp>
#include <superoffload/cpu/pinned_threads.hpp>
#include <superoffload/cpu/resource_group.hpp>
#include <superoffload/cpu/state_memory.hpp>
#include <superoffload/cpu/topology.hpp>
#include <superoffload/offload/state/segments.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::offload {

/// The threads of CPU Adam, each pinned to its own processor near a device, and the memory node beside them.
class adam_workers {
public:
  /// Starts `threads` threads, or as many as there are processors. `pci_address` is the device's; empty:
  /// none. `resource_group` is as for cpu::join_resource_group; empty: none.
  adam_workers(std::string const& pci_address, int threads, std::string const& resource_group);
  /// The same for processors of `host`, near the NUMA node of the device; negative: not known.
  adam_workers(cpu::topology const& host, int node_of_device, int threads, std::string const& resource_group);

  /// For work of other kinds, between calls of each_piece.
  [[nodiscard]] cpu::pinned_threads& threads() noexcept { return threads_; }
  /// The node for memory that the threads work on; none if the host has one node only, or none is known.
  [[nodiscard]] std::optional<int> node() const noexcept { return seat_.node; }

  /// Allocates memory near the threads, counted in `account`. A note tells if it could not be bound there.
  /// `workers` may be null for 0 bytes. \throws error(cannot_fit).
  static cpu::state_memory memory(adam_workers* workers, memory_account& account, std::size_t bytes);
  /// Called by each thread when it begins and ends its part of each_piece.
  struct listener {
    void* self = nullptr;  ///< handed to the functions; null: there is no listener
    void (*begins)(void* self, int thread) = nullptr;  ///< on the thread, before its part
    void (*ends)(void* self, int thread) = nullptr;    ///< after it
  };
  /// Sets the listener of later calls of each_piece.
  void tell(listener to) noexcept { listener_ = to; }
  /// Called within each_piece, by the calling thread, while the threads work.
  struct idle_callback {
    void* self = nullptr;                ///< handed to the function; null: there is none
    void (*pass)(void* self) = nullptr;  ///< once in each_piece, which does not return before it
  };
  /// Sets the callback of later calls of each_piece.
  void meanwhile(idle_callback what) noexcept { idle_callback_ = what; }

  /// Calls work(segment) on all threads, for pieces of the segments of a bucket of `count` elements. Returns
  /// when all is done. One call at a time.
  void each_piece(std::int64_t count, std::vector<segment> const& segments,
                  function_ref<void(segment const&)> work);

  /// Deviations from what was asked for, one line each. They change speed, not results.
  [[nodiscard]] std::vector<std::string> const& notes() const noexcept { return notes_; }
  /// Adds a line to notes().
  void note(std::string line) { notes_.push_back(std::move(line)); }

private:
  cpu::optimizer_seat seat_;
  cpu::pinned_threads threads_;
  cpu::shared_slices pieces_{threads_.size()};
  listener listener_;
  idle_callback idle_callback_;
  std::vector<std::string> notes_;
};

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/state/impl/adam_workers_inl.hpp>
#endif
