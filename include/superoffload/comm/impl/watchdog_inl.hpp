// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/watchdog.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>

namespace superoffload::comm {

namespace detail {

using clock = std::chrono::steady_clock;

/// How often the device is checked.
inline constexpr std::chrono::milliseconds poll_interval{20};

}  // namespace detail

SUPEROFFLOAD_INLINE watchdog::watchdog(membership& member, queueing_device& device)
    : member_{&member}, device_{&device}, comparing_{[this] { compare(); }}, watching_{[this] { watch(); }} {}

SUPEROFFLOAD_INLINE watchdog::~watchdog() {
  {
    std::lock_guard const lock{mutex_};
    closing_ = true;
  }
  changed_.notify_all();
  comparing_.join();
  watching_.join();
}

SUPEROFFLOAD_INLINE void watchdog::expect(call const& c) {
  {
    std::lock_guard const lock{mutex_};
    queued_.push_back(c);
  }
  changed_.notify_all();
}

SUPEROFFLOAD_INLINE void watchdog::agree(std::uint64_t number) {
  {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return compared_ > number || ended_; });
  }
  member_->check();
}

SUPEROFFLOAD_INLINE void watchdog::compare() {
  std::unique_lock lock{mutex_};
  while (true) {
    changed_.wait(lock, [&] { return !queued_.empty() || closing_ || ended_; });
    if (queued_.empty() || ended_) {
      return;
    }
    auto const next = queued_.front();
    lock.unlock();
    bool same = false;
    try {
      member_->compare(membership::lane::queued, next);
      same = true;
    } catch (error const&) {  // the group has failed, which watch() sees
    } catch (std::exception const& e) { member_->abort(e.what()); }
    lock.lock();
    if (!same) {
      ended_ = true;
      changed_.notify_all();
      return;
    }
    queued_.pop_front();
    ++compared_;
    under_way_.push_back(next);
    changed_.notify_all();
  }
}

SUPEROFFLOAD_INLINE void watchdog::watch() {
  std::unique_lock lock{mutex_};
  bool fails = false;
  auto const done = [&] { return closing_ && queued_.empty() && under_way_.empty(); };
  while (!done()) {
    auto const before = detail::clock::now();
    changed_.wait_for(lock, detail::poll_interval, done);
    // While the whole group is suspended, time passes that must not count as waiting.
    waited_ += std::min<detail::clock::duration>(detail::clock::now() - before, 2 * detail::poll_interval);
    lock.unlock();
    std::uint64_t completed = 0;
    try {
      member_->check();
      auto const why = device_->failure();
      if (fails && !why.empty()) {
        member_->abort(why);
      } else if (!why.empty()) {  // if a rank has ended, that is the better reason
        fails = true;
        member_->fail_if_process_ended(concat("before ", why));
      }
      completed = device_->completed();
    } catch (std::exception const& e) { member_->abort(e.what()); }
    lock.lock();
    try {
      check_progress(completed);
    } catch (std::exception const&) {
      ended_ = true;
      changed_.notify_all();
      lock.unlock();
      device_->abort();
      return;
    }
  }
}

SUPEROFFLOAD_INLINE void watchdog::check_progress(std::uint64_t completed) {
  while (!under_way_.empty() && under_way_.front().number < completed) { under_way_.pop_front(); }
  if (completed != completed_ || under_way_.empty()) {
    waited_ = {};
  }
  completed_ = completed;
  if (!under_way_.empty()) {
    auto const text = under_way_.front().text();
    member_->fail_if_process_ended(concat("during ", text));
    if (waited_ > member_->patience()) {
      member_->abort(concat("its device did not complete the ", text, " within ", member_->patience().count(),
                            " ms, though all ranks have queued it"));
    }
  }
  member_->check();
}

}  // namespace superoffload::comm
