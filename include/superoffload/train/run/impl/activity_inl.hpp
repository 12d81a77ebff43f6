// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/log.hpp>
#include <superoffload/train/run/activity.hpp>
#include <superoffload/train/run/metrics.hpp>
#include <superoffload/train/run/progress.hpp>

#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

namespace superoffload::train {

SUPEROFFLOAD_INLINE activity::activity(std::string what, bool is_shown) {
  if (!is_shown || !log_is_live()) {
    return;
  }
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the run's own threads
  try {
    thread_ = std::thread{[this, text = std::move(what)] { show(text); }};
  } catch (std::system_error const&) {}  // no thread for it: the work is more important
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

SUPEROFFLOAD_INLINE activity::~activity() {
  if (!thread_.joinable()) {
    return;
  }
  {
    std::lock_guard const lock{mutex_};
    ended_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

SUPEROFFLOAD_INLINE void activity::show(std::string const& what) {
  using clock = std::chrono::steady_clock;
  auto const began = clock::now();
  auto next = began + std::chrono::seconds{1};
  std::unique_lock lock{mutex_};
  bool drawn = false;
  while (!changed_.wait_until(lock, next, [this] { return ended_; })) {
    drawn = true;
    log(log_level::status, what, "  ",
        clock_text(std::chrono::duration<double>(clock::now() - began).count()), "  host ",
        bytes_text(peak_resident_bytes()));
    next = clock::now() + std::chrono::milliseconds{250};
  }
  if (drawn) {
    log_line(log_level::status, "");
  }
}

}  // namespace superoffload::train
