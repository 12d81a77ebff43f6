// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/log.hpp>
#include <superoffload/cpu/counter.hpp>
#include <superoffload/cpu/threads.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <type_traits>
#include <utility>

namespace superoffload::cpu {

class device;

namespace detail {
/// How far a stream has come, and where it failed. Outlives the stream while an event refers to it.
struct progress {
  counter done;  ///< tasks that ran or were skipped
  std::atomic<std::uint64_t> failed{
      std::numeric_limits<std::uint64_t>::max()};  ///< the first task that threw
  std::exception_ptr failure;

  /// Returns once the first `tasks` tasks are done; rethrows if one of them failed.
  void wait_for(std::uint64_t tasks) const {
    done.wait_for(tasks);
    // A failure later in the stream may be stored at this moment. That is harmless: it is not below `tasks`.
    if (failed.load(std::memory_order_relaxed) < tasks) {
      std::rethrow_exception(failure);
    }
  }
};
}  // namespace detail

/// A point in a stream. Recording again moves it; a wait that has begun keeps the earlier point. Several
/// threads may wait for an event at once, but not while it is recorded.
class event {
public:
  event() = default;
  /// An event of any of the device's streams, not recorded yet.
  explicit event(device&) noexcept {}
  event(event&&) noexcept = default;             ///< leaves the other one unrecorded
  event& operator=(event&&) noexcept = default;  ///< likewise

  /// Blocks the caller until the point is reached; rethrows when the stream failed before it. Ends the
  /// program when the event was never recorded.
  void wait() const { source().wait_for(tasks_); }

  /// Whether the point is reached, also in a stream that failed; false for an event never recorded.
  [[nodiscard]] bool done() const noexcept {
    return progress_ != nullptr && progress_->done.value() >= tasks_;
  }

private:
  friend class stream;

  [[nodiscard]] detail::progress const& source() const {
    if (progress_ == nullptr) {
      log_line(log_level::error, "superoffload: waiting for an event that was never recorded");
      std::abort();
    }
    return *progress_;
  }

  std::shared_ptr<detail::progress const> progress_;
  std::uint64_t tasks_ = 0;
};

/// An event that knows when its stream reached it. Must live until then.
class timed_event : public event {
public:
  timed_event() = default;
  /// An event of any of the device's streams, not recorded yet.
  explicit timed_event(device&) {}

  /// Seconds between the points recorded last, both of them reached; negative when `other` is later.
  [[nodiscard]] double seconds_since(timed_event const& other) const {
    return std::chrono::duration<double>(*reached_ - *other.reached_).count();
  }

private:
  friend class stream;
  using clock = std::chrono::steady_clock;

  std::unique_ptr<clock::time_point> reached_ = std::make_unique<clock::time_point>();
};

/// A thread that runs tasks one after the other. After a task has thrown, the later ones are skipped. Every
/// wait for a point behind it throws the exception, for good: `synchronize`, `event::wait`, and streams that
/// wait for such an event, which fail with it.
///
/// Any thread may queue work, except the stream's own tasks: they would wait for themselves when the queue is
/// full.
class stream {
public:
  static constexpr std::size_t capacity = 1024;   ///< tasks; a call that queues more waits
  static constexpr std::size_t task_bytes = 248;  ///< for a task's captures

  /// Starts the thread. The device must outlive the stream.
  explicit stream(device& device);
  /// The same with a pool for the insides of its tasks, which must outlive the stream.
  explicit stream(thread_pool& threads) : threads_{&threads}, worker_{[this] { serve(); }} {}
  stream(stream const&) = delete;
  stream& operator=(stream const&) = delete;
  /// Waits for all tasks; their exceptions are lost if no call waited for them.
  ~stream() {
    push(last_task{});
    worker_.join();
  }

  /// Queues `task()`. What it points to must live until it has run. Allocates nothing.
  template <class Task>
  void enqueue(Task task) {
    static_assert(std::is_trivially_copyable_v<Task>, "a task captures pointers and numbers only");
    push(task);
  }

  /// Queues a copy of `bytes` from `from` to `to`, which do not overlap.
  void copy(void* to, void const* from, std::size_t bytes);

  /// Queues zeros over `bytes` bytes at `to`.
  void fill_zero(void* to, std::size_t bytes);

  /// Makes `event` the point behind everything queued so far.
  void record(event& event);

  /// Also queues a task that notes the time.
  void record(timed_event& event);

  /// Later tasks run after the point that `event` marks now. Ends the program when it was never recorded.
  void wait(event const& event);

  /// Blocks the caller until everything queued so far has run; rethrows the first exception of a task.
  void synchronize();

  [[nodiscard]] thread_pool& threads() const noexcept { return *threads_; }  ///< for the insides of its tasks

private:
  struct last_task {};

  struct slot {
    void (*run)(void* task, bool skip);  ///< also destroys the task; null for the last one
    alignas(8) std::byte task[task_bytes];
  };

  template <class Task>
  void push(Task task) {
    static_assert(sizeof(Task) <= task_bytes && alignof(Task) <= 8, "a task captures at most 248 bytes");
    static_assert(std::is_nothrow_move_constructible_v<Task>);
    std::lock_guard const lock{producers_};
    if (next_ >= capacity && progress_->done.value() <= next_ - capacity) {
      progress_->done.wait_for(next_ - capacity / 2);  // until half is free, so as not to wake for each task
    }
    slot& entry = (*slots_)[next_ % capacity];
    if constexpr (std::is_same_v<Task, last_task>) {
      entry.run = nullptr;
    } else {
      ::new (static_cast<void*>(entry.task)) Task{std::move(task)};
      entry.run = [](void* at, bool skip) {
        Task& stored = *std::launder(static_cast<Task*>(at));
        auto const destroy = [](Task* over) { std::destroy_at(over); };
        std::unique_ptr<Task, decltype(destroy)> const ending{&stored, destroy};
        if (!skip) {
          stored();
        }
      };
    }
    queued_.raise_to(++next_);
  }

  void serve();

  /// Calls `piece(begin, size)` over `bytes`, on the pool where that is worth waking it.
  template <class Piece>
  static void in_parallel(thread_pool& pool, std::size_t bytes, Piece piece) {
    constexpr std::int64_t grain = 1 << 18;
    pool.parallel_for(static_cast<std::int64_t>(bytes), grain, [&](std::int64_t begin, std::int64_t end) {
      piece(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    });
  }

  thread_pool* threads_;
  std::shared_ptr<detail::progress> progress_ = std::make_shared<detail::progress>();
  std::unique_ptr<std::array<slot, capacity>> slots_ =
      std::make_unique_for_overwrite<std::array<slot, capacity>>();
  std::mutex producers_;
  std::uint64_t next_ = 0;  ///< tasks queued so far
  counter queued_;          ///< the same number, as the worker sees it
  std::thread worker_;
};

}  // namespace superoffload::cpu

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cpu/impl/stream_inl.hpp>
#endif
