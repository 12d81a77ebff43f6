// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/membership.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

namespace superoffload::comm {

/// A rank's device that communicates with the other ranks' devices by itself, not through the membership.
class queueing_device {
public:
  virtual ~queueing_device() = default;
  /// How many of the queued operations are complete; they complete in order.
  virtual std::uint64_t completed() = 0;
  /// Why no more of them will complete; empty when no failure is known.
  virtual std::string failure() = 0;
  /// Ends the operations that wait, without a result. Called at most once; no other function is called after
  /// it.
  virtual void abort() noexcept = 0;
};

/// Ensures that devices which communicate by themselves do not wait for each other for ever.
///
/// A rank tells its watchdog every operation that it queues on its device. The first thread compares it with
/// the operations of the other ranks: by its membership, on the lane of what is queued, behind the queueing
/// thread and without delaying it. The second thread aborts the device's operations when the group fails. It
/// fails the group when the device fails, when the process of a rank ends for whose device this one may wait,
/// and when no operation completes within the group's patience although all ranks have queued it.
class watchdog {
public:
  /// Both arguments outlive it. From now on only the watchdog uses the membership's lane of what is queued.
  watchdog(membership& member, queueing_device& device);
  watchdog(watchdog const&) = delete;
  watchdog& operator=(watchdog const&) = delete;
  /// Waits until every queued operation is complete, or the group has failed.
  ~watchdog();

  /// Call it right before `c` is queued on the device, always on the same thread.
  void expect(call const& c);
  /// Returns once all ranks are known to queue the same operation as this one's call `number`, which `expect`
  /// was told of. Throws `error` (rank_failed) when the group has failed.
  void agree(std::uint64_t number);

private:
  void compare();
  void watch();
  /// Throws when the group has failed or must be failed.
  void check_progress(std::uint64_t completed);

  membership* member_;
  queueing_device* device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<call> queued_;     ///< here, not yet compared
  std::uint64_t compared_ = 0;  ///< how many came before those
  std::deque<call> under_way_;  ///< queued on all ranks, not yet complete
  bool closing_ = false;
  bool ended_ = false;                             ///< the group has failed
  std::chrono::steady_clock::duration waited_{0};  ///< for the first of under_way_
  std::uint64_t completed_ = 0;
  std::thread comparing_, watching_;
};

}  // namespace superoffload::comm

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/comm/impl/watchdog_inl.hpp>
#endif
