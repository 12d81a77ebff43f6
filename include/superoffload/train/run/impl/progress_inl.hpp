// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/system_call.hpp>
#include <superoffload/train/run/progress.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <poll.h>
#include <unistd.h>
#include <utility>

namespace superoffload::train {
namespace detail {

inline constexpr auto clear_line = "\r\x1b[2K";
inline constexpr std::size_t most_waiting = std::size_t{64} << 10;
inline constexpr std::size_t piece = 512;  // for which a pipe that is ready has room
inline constexpr auto redraw_after = std::chrono::milliseconds{100};

template <class... Values>
std::string formatted(char const* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::string clock_text(double seconds) {
  auto const whole = static_cast<long long>(std::isfinite(seconds) ? std::fmax(0.0, seconds) : 0.0);
  if (whole >= 3600) {
    return detail::formatted("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return detail::formatted("%lld:%02lld", whole / 60, whole % 60);
}

SUPEROFFLOAD_INLINE std::string bytes_text(std::size_t bytes) {
  static constexpr char const* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024.0 && unit < 4) {
    value /= 1024.0;
    ++unit;
  }
  return unit == 0 ? detail::formatted("%zu B", bytes) : detail::formatted("%.2f %s", value, units[unit]);
}

SUPEROFFLOAD_INLINE progress::progress(std::int64_t first_step, std::int64_t total_steps,
                                       std::int64_t log_interval)
    : first_step_{first_step}, total_steps_{total_steps}, log_interval_{log_interval} {
  char const* const term = std::getenv("TERM");
  terminal_ = ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string{term} != "dumb";
}

SUPEROFFLOAD_INLINE progress::~progress() {
  if (live_) {
    put("\n");
  }
  std::fputs(waiting_.c_str(), stderr);  // for whose reader the end of a run may wait
}

SUPEROFFLOAD_INLINE void progress::step(std::int64_t step, double loss, double lr, double tokens_per_second,
                                        bool skipped) {
  auto const now = clock::now();
  bool const last = step == total_steps_;
  bool const due = last || log_interval_ <= 1 || step % log_interval_ == 0 || step == first_step_ + 1;
  if (terminal_ ? !last && now - last_drawn_ < detail::redraw_after : !due) {
    return;
  }
  last_drawn_ = now;
  double const elapsed = std::chrono::duration<double>(now - start_).count();
  double const per_step = elapsed / static_cast<double>(step - first_step_);
  auto const left = clock_text(per_step * static_cast<double>(total_steps_ - step));
  auto const line =
      detail::formatted("step %lld/%lld  loss %.4f  lr %.3g  %.0f tokens/s  %s left%s",
                        static_cast<long long>(step), static_cast<long long>(total_steps_), loss, lr,
                        tokens_per_second, left.c_str(), skipped ? "  (skipped)" : "");
  if (!last && !flush()) {
    left_out_ += terminal_ ? 0 : 1;
  } else if (terminal_) {
    put(concat(detail::clear_line, line, last ? "\n" : ""));
    live_ = !last;  // the last one stays
  } else {
    put(line + "\n");
  }
}

SUPEROFFLOAD_INLINE void progress::say(std::string const& line) {
  put(concat(clear_live_line(), line, "\n"));
}

SUPEROFFLOAD_INLINE std::string progress::clear_live_line() {
  return std::exchange(live_, false) ? detail::clear_line : "";
}

SUPEROFFLOAD_INLINE void progress::put(std::string const& text) {
  if (waiting_.size() > detail::most_waiting) {
    ++left_out_;
    return;
  }
  if (left_out_ > 0) {
    waiting_ += concat("(", std::exchange(left_out_, 0), " lines were left out: they were not read)\n");
  }
  waiting_ += text;
  flush();
}

SUPEROFFLOAD_INLINE bool progress::flush() {
  while (!waiting_.empty()) {
    pollfd about{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    if (uninterrupted([&] { return ::poll(&about, 1, 0); }) == 0) {
      return false;
    }
    auto const written = uninterrupted(
        [&] { return ::write(STDERR_FILENO, waiting_.data(), std::min(waiting_.size(), detail::piece)); });
    if (written < 0 && errno == EAGAIN) {
      return false;
    }
    // Where writing fails, as to a pipe that is closed, nobody reads what else there may be.
    waiting_.erase(0, written < 0 ? waiting_.size() : static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace superoffload::train
