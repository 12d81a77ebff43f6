// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/cpu/cores.hpp>
#include <superoffload/cpu/threads.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <iterator>
#include <mutex>
#include <utility>

namespace superoffload::cpu {

SUPEROFFLOAD_INLINE thread_pool::thread_pool(int threads) {
  int const size = threads == 0 ? default_threads() : threads;
  expect(size >= 1, exit_code::internal, "a pool of ", size, " threads was asked for: expected at least 1");
  spins_ = size <= usable_cores() ? detail::spins : 0;
  try {
    while (std::ssize(workers_) < size - 1) {
      workers_.emplace_back([this] { serve(); });
    }
  } catch (...) {
    stop();
    throw;
  }
}

SUPEROFFLOAD_INLINE thread_pool::~thread_pool() { stop(); }

SUPEROFFLOAD_INLINE void thread_pool::share(loop const& all) {
  std::lock_guard const turn{turn_};
  loop_ = all;
  failed_.store(false, std::memory_order_relaxed);
  unfinished_.store(all.pieces, std::memory_order_relaxed);
  unclaimed_.store(all.pieces, std::memory_order_release);
  call_.fetch_add(1, std::memory_order_release);
  if (all.pieces > std::ssize(workers_)) {
    call_.notify_all();
  } else {
    for (std::int64_t piece = 1; piece < all.pieces; ++piece) { call_.notify_one(); }
  }
  work();
  for (int spin = 0; spin < spins_ && unfinished_.load(std::memory_order_acquire) != 0; ++spin) {
    detail::relax();
  }
  for (auto left = unfinished_.load(std::memory_order_acquire); left != 0;
       left = unfinished_.load(std::memory_order_acquire)) {
    unfinished_.wait(left, std::memory_order_acquire);
  }
  if (failure_) {
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
}

SUPEROFFLOAD_INLINE void thread_pool::work() {
  inside_ = true;
  while (true) {
    auto const unclaimed = unclaimed_.fetch_sub(1, std::memory_order_acq_rel);
    if (unclaimed <= 0) {
      break;
    }
    if (!failed_.load(std::memory_order_relaxed)) {
      try {
        loop_.run(loop_.pieces - unclaimed);
      } catch (...) {
        if (!failed_.exchange(true, std::memory_order_relaxed)) {
          failure_ = std::current_exception();
        }
      }
    }
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      unfinished_.notify_one();
    }
  }
  inside_ = false;
}

SUPEROFFLOAD_INLINE void thread_pool::serve() {
  while (true) {
    auto const call = call_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) {
      return;
    }
    work();
    for (int spin = 0; spin < spins_ && call_.load(std::memory_order_relaxed) == call; ++spin) {
      detail::relax();
    }
    call_.wait(call, std::memory_order_acquire);
  }
}

SUPEROFFLOAD_INLINE void thread_pool::stop() noexcept {
  stopping_.store(true, std::memory_order_relaxed);
  call_.fetch_add(1, std::memory_order_release);
  call_.notify_all();
  for (auto& worker : workers_) { worker.join(); }
}

}  // namespace superoffload::cpu
