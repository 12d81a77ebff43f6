// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/cpu/pinned_threads.hpp>

#include <atomic>
#include <cerrno>
#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace superoffload::cpu {

SUPEROFFLOAD_INLINE void shared_slices::reset(std::int64_t count) noexcept {
  auto const threads = static_cast<int>(cursors_.size());
  for (int i = 0; i < threads; ++i) {
    auto const whole = slice_of(count, i, threads);
    auto& c = cursors_[static_cast<std::size_t>(i)];
    c.next.store(whole.begin, std::memory_order_relaxed);
    c.end = whole.end;
  }
}

SUPEROFFLOAD_INLINE void shared_slices::each_piece(int thread, function_ref<void(slice const&)> work) {
  auto const threads = cursors_.size();
  for (std::size_t i = 0; i < threads; ++i) {
    auto& c = cursors_[(static_cast<std::size_t>(thread) + i) % threads];
    while (c.next.load(std::memory_order_relaxed) < c.end) {
      auto const begin = c.next.fetch_add(piece, std::memory_order_relaxed);
      if (begin >= c.end) {
        break;
      }
      work(slice{begin, std::min(begin + piece, c.end)});
    }
  }
}

SUPEROFFLOAD_INLINE pinned_threads::pinned_threads(std::vector<int> const& processors)
    : size_{static_cast<int>(processors.size())} {
  expect(size_ >= 1, exit_code::internal, "pinned threads on no processor: expected at least one");
  for (int i = 0; i < size_; ++i) { workers_.emplace_back(); }
  try {
    for (int i = 0; i < size_; ++i) {
      auto const at = static_cast<std::size_t>(i);
      workers_[at].thread = std::thread{[this, i, processor = processors[at]] {
        begin(i, processor);
        serve(i);
      }};
    }
  } catch (...) {
    stop();
    throw;
  }
  for (std::unique_lock lock{mutex_}; begun_ < size_;) { all_begun_.wait(lock); }
}

SUPEROFFLOAD_INLINE pinned_threads::~pinned_threads() { stop(); }

SUPEROFFLOAD_INLINE std::vector<int> pinned_threads::thread_ids() const {
  std::vector<int> ids;
  for (auto const& w : workers_) { ids.push_back(w.id); }
  return ids;
}

SUPEROFFLOAD_INLINE void pinned_threads::run(function_ref<void(int thread, int threads)> work) {
  run(work, [] {});
}

SUPEROFFLOAD_INLINE void pinned_threads::run(function_ref<void(int thread, int threads)> work,
                                             function_ref<void()> meanwhile) {
  auto const task = submit(work);
  std::exception_ptr failure;
  try {
    meanwhile();
  } catch (...) { failure = std::current_exception(); }
  wait(task);
  if (failure) {
    std::rethrow_exception(failure);
  }
}

SUPEROFFLOAD_INLINE std::uint64_t pinned_threads::fill_zero(void* memory, std::int64_t count,
                                                            std::size_t bytes_of_element) {
  return submit([memory, count, bytes_of_element](int thread, int threads) {
    auto const mine = slice_of(count, thread, threads);
    if (mine.size() > 0) {
      std::memset(static_cast<std::byte*>(memory) + static_cast<std::size_t>(mine.begin) * bytes_of_element,
                  0, static_cast<std::size_t>(mine.size()) * bytes_of_element);
    }
  });
}

SUPEROFFLOAD_INLINE void pinned_threads::wait(std::uint64_t task) const {
  complete_.wait_for(task + 1);
  std::lock_guard const lock{mutex_};
  if (failed_.load(std::memory_order_relaxed) <= task) {
    std::rethrow_exception(failure_);
  }
}

SUPEROFFLOAD_INLINE void pinned_threads::synchronize() const {
  std::uint64_t tasks = 0;
  {
    std::lock_guard const lock{producers_};
    tasks = next_;
  }
  if (tasks > 0) {
    wait(tasks - 1);
  }
}

SUPEROFFLOAD_INLINE void pinned_threads::begin(int index, int processor) {
  std::fesetenv(FE_DFL_ENV);  // results must not depend on the caller's floating-point flags
  pthread_setname_np(pthread_self(), concat("adam-", index).substr(0, 15).c_str());
  int const refused = pin(processor);
  std::lock_guard const lock{mutex_};
  workers_[static_cast<std::size_t>(index)].id = static_cast<int>(syscall(SYS_gettid));
  if (refused != 0) {
    notes_.push_back(concat("a thread of CPU Adam could not be put on processor ", processor, " (",
                            std::strerror(refused), "): it runs wherever the system puts it"));
  }
  if (++begun_ == size_) {
    all_begun_.notify_all();
  }
}

SUPEROFFLOAD_INLINE int pinned_threads::pin(int processor) {
  cpu_set_t set[8];  // 8192 processors
  CPU_ZERO_S(sizeof set, set);
  if (processor < 0 || processor >= static_cast<int>(8 * sizeof set)) {
    return EINVAL;
  }
  CPU_SET_S(static_cast<std::size_t>(processor), sizeof set, set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, set);
}

SUPEROFFLOAD_INLINE void pinned_threads::stop() noexcept {
  push([](slot& entry) { entry.work = nullptr; });
  for (auto& w : workers_) {
    if (w.thread.joinable()) {
      w.thread.join();
    }
  }
}

}  // namespace superoffload::cpu
