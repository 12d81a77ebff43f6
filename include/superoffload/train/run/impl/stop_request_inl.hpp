// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/core/log.hpp>
#include <superoffload/train/run/stop_request.hpp>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <time.h>

namespace superoffload::train {
namespace detail {

/// The first signal, and the millisecond in which it came above it; 0: none. One number, as several threads
/// may get signals at once.
inline std::atomic<std::int64_t> requested{0};
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "a signal handler may not take a lock");
inline constexpr std::int64_t of_signal = 256;

inline constexpr int handled[] = {SIGTERM, SIGINT, SIGHUP};
inline constexpr auto signals = std::size(handled);
inline struct ::sigaction former[signals];
inline std::mutex mutex;  // guards `former` and `objects`
inline int objects = 0;

SUPEROFFLOAD_INLINE void remember(int number) {
  struct timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  auto const now = std::int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
  std::int64_t first = 0;
  if (requested.compare_exchange_strong(first, now * of_signal + number) ||
      number == SIGHUP ||  // a closing terminal may send it more than once
      (first % of_signal == number && now - first / of_signal < stop_request::same_request.count())) {
    return;
  }
  erase_status();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

}  // namespace detail

SUPEROFFLOAD_INLINE stop_request::stop_request() {
  std::lock_guard const lock{detail::mutex};
  if (detail::objects++ > 0) {
    return;
  }
  detail::requested = 0;
  struct ::sigaction action{};
  action.sa_handler = detail::remember;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < detail::signals; ++i) {
    sigaction(detail::handled[i], nullptr, &detail::former[i]);
    bool const by_nohup = detail::handled[i] == SIGHUP && detail::former[i].sa_handler == SIG_IGN;
    if (!by_nohup) {
      sigaction(detail::handled[i], &action, nullptr);
    }
  }
}

SUPEROFFLOAD_INLINE stop_request::~stop_request() {
  std::lock_guard const lock{detail::mutex};
  if (--detail::objects > 0) {
    return;
  }
  for (std::size_t i = 0; i < detail::signals; ++i) {
    sigaction(detail::handled[i], &detail::former[i], nullptr);
  }
}

SUPEROFFLOAD_INLINE int stop_request::signal() const noexcept {
  return static_cast<int>(detail::requested % detail::of_signal);
}

}  // namespace superoffload::train
