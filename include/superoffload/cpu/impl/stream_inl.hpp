// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/cpu/stream.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>

namespace superoffload::cpu {

SUPEROFFLOAD_INLINE void stream::serve() {
  bool skip = false;
  for (std::uint64_t task = 0;; ++task) {
    queued_.wait_for(task + 1);
    slot& entry = (*slots_)[task % capacity];
    if (entry.run == nullptr) {
      return;
    }
    try {
      entry.run(entry.task, skip);
    } catch (...) {
      skip = true;
      progress_->failure = std::current_exception();
      progress_->failed.store(task, std::memory_order_relaxed);
    }
    progress_->done.raise_to(task + 1);
  }
}

SUPEROFFLOAD_INLINE void stream::copy(void* to, void const* from, std::size_t bytes) {
  enqueue([to, from, bytes, pool = threads_] {
    in_parallel(*pool, bytes, [=](std::size_t begin, std::size_t size) {
      std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<std::byte const*>(from) + begin, size);
    });
  });
}

SUPEROFFLOAD_INLINE void stream::fill_zero(void* to, std::size_t bytes) {
  enqueue([to, bytes, pool = threads_] {
    in_parallel(*pool, bytes, [=](std::size_t begin, std::size_t size) {
      std::memset(static_cast<std::byte*>(to) + begin, 0, size);
    });
  });
}

SUPEROFFLOAD_INLINE void stream::record(event& event) {
  std::lock_guard const lock{producers_};
  event.progress_ = progress_;
  event.tasks_ = next_;
}

SUPEROFFLOAD_INLINE void stream::record(timed_event& event) {
  enqueue([reached = event.reached_.get()] { *reached = timed_event::clock::now(); });
  record(static_cast<cpu::event&>(event));
}

SUPEROFFLOAD_INLINE void stream::wait(event const& event) {
  if (&event.source() != progress_.get()) {  // its own points are behind it in any case
    push([source = event.progress_, tasks = event.tasks_] { source->wait_for(tasks); });
  }
}

SUPEROFFLOAD_INLINE void stream::synchronize() {
  std::uint64_t tasks = 0;
  {
    std::lock_guard const lock{producers_};
    tasks = next_;
  }
  progress_->wait_for(tasks);
}

}  // namespace superoffload::cpu
