// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/function_ref.hpp>
#include <superoffload/cpu/cores.hpp>
#include <superoffload/cpu/counter.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace superoffload::cpu {

/// The part of an array that one of several threads works on, in elements.
struct slice {
  std::int64_t begin = 0;  ///< its first element
  std::int64_t end = 0;    ///< behind its last element

  [[nodiscard]] constexpr std::int64_t size() const { return end - begin; }  ///< elements; may be 0
  friend bool operator==(slice, slice) = default;                            ///< same bounds
};

/// Cuts `count` elements for `threads` threads at multiples of 2048, which are whole pages of any array whose
/// elements have two bytes or more. The cuts are always the same, so that a page stays with the thread that
/// touched it first.
constexpr slice slice_of(std::int64_t count, int thread, int threads) {
  constexpr std::int64_t grain = 2048;
  auto const grains = (count + grain - 1) / grain;
  auto const cut = [&](int n) { return std::min(count, grains * n / threads * grain); };
  return {cut(thread), cut(thread + 1)};
}

/// An array that threads work on together. Each thread takes pieces of its own slice_of the array first, and
/// then pieces that are left of the others' slices: processors of one host are not always equally fast, and a
/// task is complete only with the last thread. For work whose result does not depend on the thread.
class shared_slices {
public:
  /// For threads 0 to `threads` - 1. Call reset() before each array.
  explicit shared_slices(int threads) : cursors_(static_cast<std::size_t>(threads)) {}

  /// Begins again, with `count` elements. No thread may be at work.
  void reset(std::int64_t count) noexcept;
  /// work(slice) for pieces, until nothing is left.
  void each_piece(int thread, function_ref<void(slice const&)> work);

private:
  static constexpr std::int64_t piece = 8 * 2048;  // tens of microseconds of work
  struct alignas(64) cursor {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };
  std::vector<cursor> cursors_;
};

/// Threads, each on a processor of its own, that do every task together, each its own part of it. A thread
/// begins the next task when its part is done, without waiting for the others. So tasks complete in the order
/// in which they were submitted, and a thread's work for a task sees its own work for earlier ones.
///
/// After a task has thrown, later ones are skipped. Every wait for that task or a later one throws the
/// exception, for good. Any thread may submit, but the threads' own tasks must not.
class pinned_threads {
public:
  static constexpr std::size_t capacity = 256;    ///< tasks; a call that submits more waits
  static constexpr std::size_t task_bytes = 248;  ///< for a task's captures

  /// One thread for each of `processors`, numbers of logical processors. A thread that may not be pinned runs
  /// on any processor, and notes() says so.
  explicit pinned_threads(std::vector<int> const& processors);
  pinned_threads(pinned_threads const&) = delete;
  pinned_threads& operator=(pinned_threads const&) = delete;
  /// Waits for all tasks; their exceptions are lost if no call waited for them.
  ~pinned_threads();

  [[nodiscard]] int size() const noexcept { return size_; }  ///< the number of threads
  /// Requests that the system refused, one line each.
  [[nodiscard]] std::vector<std::string> const& notes() const noexcept { return notes_; }
  /// The threads' ids in the operating system.
  [[nodiscard]] std::vector<int> thread_ids() const;

  /// Calls work(thread, threads) on every thread, and then done() on the thread that finishes last. Neither
  /// may wait for tasks. What they point to must live until the task is complete. Allocates nothing. Returns
  /// the task's number, for wait().
  template <class Work, class Done>
  std::uint64_t submit(Work work, Done done) {
    struct both {
      Work work;
      Done done;
    };
    static_assert(std::is_trivially_copyable_v<Work> && std::is_trivially_copyable_v<Done>,
                  "a task captures pointers and numbers only");
    static_assert(sizeof(both) <= task_bytes && alignof(both) <= 8, "a task captures at most 248 bytes");
    return push([&](slot& entry) {
      ::new (static_cast<void*>(entry.task)) both{work, done};
      entry.work = [](void* task, int thread, int threads) {
        std::launder(static_cast<both*>(task))->work(thread, threads);
      };
      entry.done = [](void* task) { std::launder(static_cast<both*>(task))->done(); };
    });
  }
  /// The same without a last call.
  template <class Work>
  std::uint64_t submit(Work work) {
    return submit(work, [] {});
  }

  /// The same at once: returns when the task is complete; rethrows as wait does. `work` may capture anything.
  void run(function_ref<void(int thread, int threads)> work);
  /// The same, and calls meanwhile() on the calling thread while the others work. Its exception is thrown
  /// after they are done.
  void run(function_ref<void(int thread, int threads)> work, function_ref<void()> meanwhile);

  /// Writes zeros to the elements, each thread to its own slice, so that the thread that uses a page touches
  /// it first.
  std::uint64_t fill_zero(void* memory, std::int64_t count, std::size_t bytes_of_element);

  /// Blocks until the task is complete; rethrows the exception of the first failed task, if that is this task
  /// or an earlier one.
  void wait(std::uint64_t task) const;
  /// Blocks until all tasks submitted so far are complete; rethrows as wait does.
  void synchronize() const;
  /// Whether the task is complete; also true when it failed or was skipped.
  [[nodiscard]] bool done(std::uint64_t task) const noexcept { return complete_.value() > task; }

private:
  /// How often a thread polls for a task before it sleeps: some tens of microseconds, the time that waking it
  /// takes. 0 when no core is left for the submitting thread.
  static constexpr int patience = 1000;
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  struct slot {
    void (*work)(void* task, int thread, int threads);  ///< null for the last task
    void (*done)(void* task);
    std::atomic<int> unfinished;  ///< threads
    alignas(8) std::byte task[task_bytes];
  };
  struct worker {
    std::thread thread;
    int id = 0;
  };

  template <class Fill>
  std::uint64_t push(Fill const& fill) {
    std::lock_guard const lock{producers_};
    if (next_ >= capacity) {
      complete_.wait_for(next_ - capacity + 1);
    }
    slot& entry = (*slots_)[next_ % capacity];
    entry.unfinished.store(size_, std::memory_order_relaxed);
    fill(entry);
    queued_.raise_to(next_ + 1);
    return next_++;
  }

  void begin(int index, int processor);
  static int pin(int processor);

  void serve(int thread) {
    for (std::uint64_t task = 0;; ++task) {
      queued_.wait_for(task + 1, polls_);
      slot& entry = (*slots_)[task % capacity];
      if (entry.work == nullptr) {
        return;
      }
      attempt(task, [&] { entry.work(entry.task, thread, size_); });
      if (entry.unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        // All threads have done their parts of this task and of the tasks before, since tasks complete in
        // order.
        attempt(task, [&] { entry.done(entry.task); });
        complete_.raise_to(task + 1);
      }
    }
  }
  template <class Body>
  void attempt(std::uint64_t task, Body const& body) {
    if (failed_.load(std::memory_order_relaxed) <= task) {
      return;
    }
    try {
      body();
    } catch (...) {
      std::lock_guard const lock{mutex_};
      if (task < failed_.load(std::memory_order_relaxed)) {  // another thread may have failed in a later task
        failure_ = std::current_exception();
        failed_.store(task, std::memory_order_relaxed);
      }
    }
  }

  void stop() noexcept;

  int size_;
  int polls_ = size_ < usable_cores() ? patience : 0;
  std::vector<worker> workers_;
  std::unique_ptr<std::array<slot, capacity>> slots_ =
      std::make_unique_for_overwrite<std::array<slot, capacity>>();
  mutable std::mutex producers_;
  std::uint64_t next_ = 0;  ///< tasks submitted so far
  counter queued_;          ///< the same number, as the threads see it
  counter complete_;        ///< tasks
  mutable std::mutex mutex_;
  std::condition_variable all_begun_;
  int begun_ = 0;
  std::vector<std::string> notes_;
  std::exception_ptr failure_;
  std::atomic<std::uint64_t> failed_{never};  ///< the first task that threw
};

}  // namespace superoffload::cpu

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cpu/impl/pinned_threads_inl.hpp>
#endif
