// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/core/log.hpp>
#include <superoffload/core/system_call.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

namespace superoffload {
namespace detail {

inline constexpr std::string_view clear_line = "\r\x1b[2K";
/// Is there a status on standard error? Signal handlers ask.
inline std::atomic<bool> has_status{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may not take a lock");

inline bool shows_on_terminal() noexcept {
  char const* const term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view{term} != "dumb";
}

/// Where lines are written: standard error, or its terminal, opened once more. A terminal that is ready may
/// take less than a line, and only a description of one's own may be made not to wait for the rest.
inline int line_descriptor() noexcept {
  if (::isatty(STDERR_FILENO) != 1) {
    return STDERR_FILENO;
  }
  static int const terminal =
      uninterrupted([] { return ::open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); });
  return terminal >= 0 ? terminal : STDERR_FILENO;
}
/// The same for signal handlers; set with the first status.
inline std::atomic<int> status_descriptor{STDERR_FILENO};

/// Columns of the terminal; of one that does not tell, COLUMNS, or 80.
inline std::size_t columns_of_terminal() noexcept {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return size.ws_col;
  }
  char const* const told = std::getenv("COLUMNS");
  std::size_t columns = 0;
  if (told != nullptr) {
    std::string_view const text{told};
    std::from_chars(text.data(), text.data() + text.size(), columns);
  }
  return columns > 0 ? columns : 80;
}

/// The beginning of a status that fits: a terminal would go to its next line, which is not erased.
inline std::string_view cut_to_width(std::string_view line, std::size_t columns) noexcept {
  std::size_t const most = columns - 1;
  if (line.size() <= most) {
    return line;
  }
  auto const whole_parts = line.rfind("  ", most);
  auto const bytes = whole_parts == std::string_view::npos || whole_parts == 0 ? most : whole_parts;
  return line.substr(0, bytes);
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
    std::string text{take_status() ? clear_line : ""};
    bool const colored = level > log_level::info && log_is_colored();
    if (level == log_level::warning) {
      text += colored ? "\x1b[33mwarning:\x1b[0m " : "warning: ";
    } else if (level == log_level::note) {
      text += colored ? "\x1b[36mnote:\x1b[0m " : "note: ";
    }
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
      if (take_status()) {
        waiting_ += clear_line;
      }
      tell_left_out();
    } catch (...) {}
    write_waiting(-1);
  }

private:
  static constexpr std::size_t max_waiting = std::size_t{64} << 10;
  static constexpr std::size_t piece = 512;  // a pipe that is ready takes that much

  void draw(std::string_view line) {
    if (!write_waiting(0) || (line.empty() && !has_status)) {
      return;
    }
    status_descriptor = line_descriptor();
    has_status = !line.empty();
    keep(std::string{clear_line}.append(cut_to_width(line, columns_of_terminal())));
  }
  /// Was the last line a status? It is no more.
  static bool take_status() noexcept { return has_status.exchange(false); }
  void tell_left_out() {
    if (left_out_ > 0) {
      waiting_ += concat("(", std::exchange(left_out_, 0), " lines were left out: they were not read)\n");
    }
  }
  void keep(std::string_view text) {
    if (waiting_.size() > max_waiting) {
      ++left_out_;
      return;
    }
    tell_left_out();
    waiting_ += text;
    write_waiting(0);
  }
  /// Writes until a piece must wait longer than `timeout` ms; -1: no limit. \returns whether all is written.
  bool write_waiting(int timeout) noexcept {
    int const to = line_descriptor();
    while (!waiting_.empty()) {
      pollfd about{.fd = to, .events = POLLOUT, .revents = 0};
      if (uninterrupted([&] { return ::poll(&about, 1, timeout); }) == 0) {
        return false;
      }
      auto const written =
          uninterrupted([&] { return ::write(to, waiting_.data(), std::min(waiting_.size(), piece)); });
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
  return log.sink.live && log.least == log_level::status;
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

SUPEROFFLOAD_INLINE void erase_status() noexcept {
  int const to = detail::status_descriptor;
  pollfd about{.fd = to, .events = POLLOUT, .revents = 0};
  if (detail::has_status.exchange(false) && ::poll(&about, 1, 0) == 1) {
    // If this fails, the line stays: nothing else can be done.
    [[maybe_unused]] auto const written = ::write(to, detail::clear_line.data(), detail::clear_line.size());
  }
}

SUPEROFFLOAD_INLINE bool log_is_colored() noexcept {
  char const* const unwanted = std::getenv("NO_COLOR");
  return (unwanted == nullptr || *unwanted == '\0') && detail::shows_on_terminal();
}

}  // namespace superoffload
