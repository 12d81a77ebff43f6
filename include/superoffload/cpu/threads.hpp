// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

namespace superoffload::cpu {

namespace detail {
/// What a thread does between two polls of a value that is about to change.
inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Polls before a thread sleeps: a few microseconds.
inline constexpr int spins = 100;
}  // namespace detail

/// Threads that share loops. All but the caller's belong to the pool, and sleep while there is nothing to do.
class thread_pool {
public:
  /// `threads` in all, the caller of a loop included; 0 is `default_threads()`.
  explicit thread_pool(int threads = 0);
  thread_pool(thread_pool const&) = delete;
  thread_pool& operator=(thread_pool const&) = delete;
  ~thread_pool();

  /// Threads that share a loop, its caller included.
  [[nodiscard]] int size() const noexcept { return static_cast<int>(workers_.size()) + 1; }

  /// Calls `body(begin, end)` for [0, grain), [grain, 2 * grain), ... up to `count`, each once, on any thread
  /// and in any order; returns when all are done. These pieces are the same for every number of threads, so
  /// that results may depend on them. Rethrows one of the body's exceptions; pieces not begun are then left
  /// out. Callers on several threads take turns; a call from inside a body runs at once on its own thread.
  /// Allocates nothing.
  template <class Body>
  void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) {
    expect(grain > 0, exit_code::internal, "parallel_for over pieces of ", grain, ": expected at least 1");
    if (count <= 0) {
      return;
    }
    loop const all{[](void const* context, std::int64_t begin, std::int64_t end) {
                     using callable = std::remove_reference_t<Body>;
                     (*static_cast<callable*>(const_cast<void*>(context)))(begin, end);
                   },
                   std::addressof(body), count, grain, count / grain + (count % grain != 0 ? 1 : 0)};
    if (all.pieces == 1 || workers_.empty() || inside_) {
      for (std::int64_t piece = 0; piece < all.pieces; ++piece) { all.run(piece); }
    } else {
      share(all);
    }
  }

private:
  struct loop {
    void (*body)(void const*, std::int64_t, std::int64_t) = nullptr;
    void const* context = nullptr;
    std::int64_t count = 0;
    std::int64_t grain = 1;
    std::int64_t pieces = 0;

    void run(std::int64_t piece) const {
      std::int64_t const begin = piece * grain;
      body(context, begin, begin + std::min(grain, count - begin));
    }
  };

  void share(loop const& all);

  /// Runs pieces while there are any. Only a thread that has claimed a piece may read the loop: it cannot end
  /// before.
  void work();

  void serve();

  void stop() noexcept;

  static inline thread_local bool inside_ = false;

  std::deque<std::thread> workers_;  // g++ 12 warns, wrongly, of a vector that grows
  int spins_ = 0;
  std::mutex turn_;
  loop loop_;
  std::exception_ptr failure_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<std::uint32_t> call_{0};      ///< changes when there is something new to do
  alignas(64) std::atomic<std::int64_t> unclaimed_{0};  ///< below zero when threads came too late
  alignas(64) std::atomic<std::int64_t> unfinished_{0};
};

}  // namespace superoffload::cpu

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cpu/impl/threads_inl.hpp>
#endif
