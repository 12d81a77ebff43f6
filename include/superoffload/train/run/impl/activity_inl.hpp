// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/bytes_text.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/log.hpp>
#include <superoffload/train/run/activity.hpp>
#include <superoffload/train/run/metrics.hpp>
#include <superoffload/train/run/progress.hpp>

#include <chrono>
#include <cmath>
#include <csignal>
#include <exception>
#include <system_error>
#include <utility>

namespace superoffload::train {

SUPEROFFLOAD_INLINE void log_time(std::string const& what, std::size_t bytes, double seconds) {
  if (seconds < 1.0) {
    return;
  }
  auto const rounded = concat(std::round(10.0 * seconds) / 10.0, " s");
  if (bytes == 0) {
    log(log_level::info, what, ": ", rounded);
    return;
  }
  log(log_level::info, what, ": ", bytes_text(bytes), " in ", rounded, ", ",
      bytes_text(static_cast<std::size_t>(static_cast<double>(bytes) / seconds)), " a second");
}

SUPEROFFLOAD_INLINE activity::activity(std::string what, bool is_shown, std::size_t bytes)
    : what_{std::move(what)}, is_shown_{is_shown}, bytes_{bytes}, exceptions_{std::uncaught_exceptions()} {
  if (!is_shown || !log_is_live()) {
    return;
  }
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the run's own threads
  try {
    thread_ = std::thread{[this] { show(); }};
  } catch (std::system_error const&) {}  // no thread for it: the work is more important
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

SUPEROFFLOAD_INLINE activity::~activity() {
  if (thread_.joinable()) {
    {
      std::lock_guard const lock{mutex_};
      ended_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  if (is_shown_ && std::uncaught_exceptions() == exceptions_) {
    log_time(what_, bytes_, std::chrono::duration<double>(clock::now() - began_).count());
  }
}

SUPEROFFLOAD_INLINE void activity::show() {
  auto next = began_ + std::chrono::seconds{1};
  std::unique_lock lock{mutex_};
  bool drawn = false;
  while (!changed_.wait_until(lock, next, [this] { return ended_; })) {
    drawn = true;
    log(log_level::status, what_, "  ",
        clock_text(std::chrono::duration<double>(clock::now() - began_).count()), "  host ",
        bytes_text(peak_resident_bytes()));
    next = clock::now() + std::chrono::milliseconds{250};
  }
  if (drawn) {
    log_line(log_level::status, "");
  }
}

}  // namespace superoffload::train
