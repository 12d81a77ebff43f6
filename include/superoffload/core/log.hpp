// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>

#include <string>
#include <string_view>

namespace superoffload {

/// The importance of a line. A status, such as the progress of a run, replaces the one before it; an empty
/// one removes it.
enum class log_level { status, info, note, warning, error };

/// Where the library's lines go. `write` gets one line without its end, from any thread, but one at a time;
/// it must not throw or log. The library itself writes nowhere else.
struct log_sink {
  void (*write)(void* self, log_level level, std::string_view line) noexcept = nullptr;  ///< null: nowhere
  void* self = nullptr;  ///< handed to `write`; it must live until another sink is set
  bool live = false;  ///< a status replaces the one before it; otherwise a run logs plain lines now and then
};

/// The default sink: standard error, where notes and warnings begin with that word. The program never waits
/// for a reader, such as a stopped terminal or a full pipe: up to 64 KiB of lines are kept until they can be
/// written; others are dropped and counted. Live if standard error is a terminal: then a status is cut to its
/// width, at a double space if it has one, and is erased before any other line. Colours are for a terminal,
/// and not if NO_COLOR is set.
[[nodiscard]] log_sink standard_error_sink() noexcept;

/// Replaces the sink of the whole program, after a line that is being written. \returns the previous sink.
log_sink set_log_sink(log_sink sink) noexcept;
/// Lines below `least` are dropped; by default none are. \returns the previous level.
log_level set_log_level(log_level least) noexcept;

/// Is the sink live, and are statuses not below the level?
[[nodiscard]] bool log_is_live() noexcept;

/// Hands a line to the sink. Any thread may call it.
void log_line(log_level level, std::string_view line) noexcept;
/// The parts as one line, joined by concat().
template <class... Parts>
void log(log_level level, Parts const&... parts) noexcept {
  try {
    log_line(level, concat(parts...));
  } catch (...) {}  // no memory for the line
}

/// Writes the lines that the sink of standard error still keeps, erases the status, and waits for the reader.
/// For the end of a run, and before a program itself writes to standard error.
void flush_log() noexcept;

/// Erases the status on standard error, if there is one and the terminal takes it at once. For a signal
/// handler that ends the program.
void erase_status() noexcept;

/// Is standard error a terminal that may show colours?
[[nodiscard]] bool log_is_colored() noexcept;

}  // namespace superoffload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/core/impl/log_inl.hpp>
#endif
