// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/core/log.hpp>
#include <superoffload/core/system_call.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <poll.h>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace superoffload {
namespace detail {

inline bool shows_on_terminal() noexcept {
  char const* const term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view{term} != "dumb";
}

/// Lines on their way to standard error.
class standard_error {
public:
  standard_error() = default;
  standard_error(standard_error const&) = delete;
  standard_error& operator=(standard_error const&) = delete;
  ~standard_error() { flush(); }

  void write(log_level level, std::string_view line) {
    if (level == log_level::status) {
      draw(line);
      return;
    }
    std::string text{std::exchange(live_, false) ? clear_line : ""};
    text += level == log_level::warning ? "warning: " : level == log_level::note ? "note: " : "";
    text += line;
    text += '\n';
    keep(text);
    if (level == log_level::error) {  // the program may end right after it
      flush();
    }
  }
  /// Waits for the reader.
  void flush() noexcept {
    try {
      if (std::exchange(live_, false)) {
        waiting_ += '\n';
      }
    } catch (...) {}
    write_waiting(-1);
  }

private:
  static constexpr auto clear_line = "\r\x1b[2K";
  static constexpr std::size_t max_waiting = std::size_t{64} << 10;
  static constexpr std::size_t piece = 512;  // a pipe that is ready takes that much

  void draw(std::string_view line) {
    if (write_waiting(0)) {
      keep(std::string{clear_line}.append(line));
      live_ = true;
    }
  }
  void keep(std::string_view text) {
    if (waiting_.size() > max_waiting) {
      ++left_out_;
      return;
    }
    if (left_out_ > 0) {
      waiting_ += concat("(", std::exchange(left_out_, 0), " lines were left out: they were not read)\n");
    }
    waiting_ += text;
    write_waiting(0);
  }
  /// Writes until a piece must wait longer than `timeout` ms; -1: no limit. \returns whether all is written.
  bool write_waiting(int timeout) noexcept {
    while (!waiting_.empty()) {
      pollfd about{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
      if (uninterrupted([&] { return ::poll(&about, 1, timeout); }) == 0) {
        return false;
      }
      auto const written = uninterrupted(
          [&] { return ::write(STDERR_FILENO, waiting_.data(), std::min(waiting_.size(), piece)); });
      if (written < 0 && errno == EAGAIN) {
        if (timeout == 0) {
          return false;
        }
        continue;
      }
      // If writing fails, as to a closed pipe, the rest has no reader either.
      waiting_.erase(0, written < 0 ? waiting_.size() : static_cast<std::size_t>(written));
    }
    return true;
  }

  std::string waiting_;  // to be written
  std::int64_t left_out_ = 0;
  bool live_ = false;  // the last line written is a status
};

struct log_of_program {
  std::mutex mutex;
  standard_error fallback;
  log_sink sink = standard_error_sink();
  log_level least = log_level::status;
};
inline log_of_program& program_log() {
  static log_of_program log;
  return log;
}

}  // namespace detail

SUPEROFFLOAD_INLINE log_sink standard_error_sink() noexcept {
  return {[](void*, log_level level, std::string_view line) noexcept {
            try {
              detail::program_log().fallback.write(level, line);
            } catch (...) {}  // no memory for the line
          },
          nullptr, detail::shows_on_terminal()};
}

SUPEROFFLOAD_INLINE log_sink set_log_sink(log_sink sink) noexcept {
  auto& log = detail::program_log();
  std::lock_guard const lock{log.mutex};
  return std::exchange(log.sink, sink);
}

SUPEROFFLOAD_INLINE log_level set_log_level(log_level least) noexcept {
  auto& log = detail::program_log();
  std::lock_guard const lock{log.mutex};
  return std::exchange(log.least, least);
}

SUPEROFFLOAD_INLINE bool log_is_live() noexcept {
  auto& log = detail::program_log();
  std::lock_guard const lock{log.mutex};
  return log.sink.live;
}

// Device code calls it, which nvcc compiles separately.
SUPEROFFLOAD_EMITTED void log_line(log_level level, std::string_view line) noexcept {
  auto& log = detail::program_log();
  std::lock_guard const lock{log.mutex};
  if (level >= log.least && log.sink.write != nullptr) {
    log.sink.write(log.sink.self, level, line);
  }
}

SUPEROFFLOAD_INLINE void flush_log() noexcept {
  auto& log = detail::program_log();
  std::lock_guard const lock{log.mutex};
  log.fallback.flush();
}

}  // namespace superoffload
