// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/shared_segment.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

namespace superoffload::comm {

/// A rank's device that exchanges with the others' devices by itself, past the region.
class queueing_device {
public:
  virtual ~queueing_device() = default;
  /// How many of the operations that were queued are complete; they are so in their order.
  virtual std::uint64_t completed() = 0;
  /// Why no more of them will be; empty: nothing is known to be wrong.
  virtual std::string failure() = 0;
  /// Ends those that wait, without a result. Called at most once, and nothing else after it.
  virtual void abort() noexcept = 0;
};

/// Sees to it that devices which exchange by themselves wait for each other no longer than it makes sense.
///
/// What a rank gives its device to do it also tells its watchdog, whose first thread compares it with what
/// the other ranks do: over the region, on the lane of what is queued, behind the rank that queues and
/// without holding it up. The second thread aborts the device's operations when the group is failed, and
/// fails it when the device fails, when the process of a rank ends whose device this one may wait for, and
/// when no operation ends within the group's patience though all ranks have queued it.
class watchdog {
public:
  /// Both outlive it. From now on the membership's lane of what is queued is the watchdog's.
  watchdog(membership& member, queueing_device& device);
  watchdog(watchdog const&) = delete;
  watchdog& operator=(watchdog const&) = delete;
  /// Waits for every operation that was queued to be complete, or for the end of the group.
  ~watchdog();

  /// The device is given `c` to do, now. The same thread every time.
  void expect(call const& c);
  /// Returns once all ranks are known to give their devices the same as this one its call `number`, which it
  /// expects. Throws `error` (rank_failed) when the group is failed instead.
  void agree(std::uint64_t number);

private:
  void compare();
  void watch();
  /// Throws when the group is failed, or has to be.
  void look(std::uint64_t completed);

  membership* member_;
  queueing_device* device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<call> queued_;     ///< here, and not compared
  std::uint64_t compared_ = 0;  ///< before those
  std::deque<call> under_way_;  ///< on all ranks, and not complete
  bool leaves_ = false;
  bool ended_ = false;                             ///< the group is failed
  std::chrono::steady_clock::duration waited_{0};  ///< for the first that is under way
  std::uint64_t completed_ = 0;
  std::thread comparing_, watching_;
};

}  // namespace superoffload::comm

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/comm/impl/watchdog_inl.hpp>
#endif
