// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/cpu/cores.hpp>
#include <superoffload/cpu/counter.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cfenv>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <type_traits>
#include <unistd.h>
#include <utility>
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
  void reset(std::int64_t count) noexcept {
    auto const threads = static_cast<int>(cursors_.size());
    for (int i = 0; i < threads; ++i) {
      auto const whole = slice_of(count, i, threads);
      auto& c = cursors_[static_cast<std::size_t>(i)];
      c.next.store(whole.begin, std::memory_order_relaxed);
      c.end = whole.end;
    }
  }
  /// work(slice) for pieces, until nothing is left.
  template <class Work>
  void each_piece(int thread, Work const& work) {
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
  explicit pinned_threads(std::vector<int> const& processors) : size_{static_cast<int>(processors.size())} {
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
  pinned_threads(pinned_threads const&) = delete;
  pinned_threads& operator=(pinned_threads const&) = delete;
  /// Waits for all tasks; their exceptions are lost if no call waited for them.
  ~pinned_threads() { stop(); }

  [[nodiscard]] int size() const noexcept { return size_; }  ///< the number of threads
  /// Requests that the system refused, one line each.
  [[nodiscard]] std::vector<std::string> const& notes() const noexcept { return notes_; }
  /// The threads' ids in the operating system.
  [[nodiscard]] std::vector<int> thread_ids() const {
    std::vector<int> ids;
    for (auto const& w : workers_) { ids.push_back(w.id); }
    return ids;
  }

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
  template <class Work>
  void run(Work&& work) {
    run(work, [] {});
  }
  /// The same, and calls meanwhile() on the calling thread while the others work. Its exception is thrown
  /// after they are done.
  template <class Work, class Meanwhile>
  void run(Work&& work, Meanwhile&& meanwhile) {
    auto const task = submit([&work](int thread, int threads) { work(thread, threads); });
    std::exception_ptr failure;
    try {
      meanwhile();
    } catch (...) { failure = std::current_exception(); }
    wait(task);
    if (failure) {
      std::rethrow_exception(failure);
    }
  }

  /// Writes zeros to the elements, each thread to its own slice, so that the thread that uses a page touches
  /// it first.
  std::uint64_t fill_zero(void* memory, std::int64_t count, std::size_t bytes_of_element) {
    return submit([memory, count, bytes_of_element](int thread, int threads) {
      auto const mine = slice_of(count, thread, threads);
      if (mine.size() > 0) {
        std::memset(static_cast<std::byte*>(memory) + static_cast<std::size_t>(mine.begin) * bytes_of_element,
                    0, static_cast<std::size_t>(mine.size()) * bytes_of_element);
      }
    });
  }

  /// Blocks until the task is complete; rethrows the exception of the first failed task, if that is this task
  /// or an earlier one.
  void wait(std::uint64_t task) const {
    complete_.wait_for(task + 1);
    std::lock_guard const lock{mutex_};
    if (failed_.load(std::memory_order_relaxed) <= task) {
      std::rethrow_exception(failure_);
    }
  }
  /// Blocks until all tasks submitted so far are complete; rethrows as wait does.
  void synchronize() const {
    std::uint64_t tasks = 0;
    {
      std::lock_guard const lock{producers_};
      tasks = next_;
    }
    if (tasks > 0) {
      wait(tasks - 1);
    }
  }
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

  void begin(int index, int processor) {
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
  static int pin(int processor) {
    cpu_set_t set[8];  // 8192 processors
    CPU_ZERO_S(sizeof set, set);
    if (processor < 0 || processor >= static_cast<int>(8 * sizeof set)) {
      return EINVAL;
    }
    CPU_SET_S(static_cast<std::size_t>(processor), sizeof set, set);
    return pthread_setaffinity_np(pthread_self(), sizeof set, set);
  }

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

  void stop() noexcept {
    push([](slot& entry) { entry.work = nullptr; });
    for (auto& w : workers_) {
      if (w.thread.joinable()) {
        w.thread.join();
      }
    }
  }

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
