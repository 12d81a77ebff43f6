// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>

#include <string>
#include <string_view>

namespace superoffload {

/// How much a line of the library matters. A status, such as how far a run is, takes the place of the one
/// before it.
enum class log_level { status, info, note, warning, error };

/// Where the library's lines go. `write` gets one line without its end, from any thread, but from one at a
/// time; it neither throws nor logs. The library itself writes nowhere else.
struct log_sink {
  void (*write)(void* self, log_level level, std::string_view line) noexcept = nullptr;  ///< null: nowhere
  void* self = nullptr;
  bool live =
      false;  ///< shows a status in the place of the one before; else a run logs plain lines now and then
};

/// The sink of a program that sets none: standard error, where notes and warnings begin with that word. The
/// program never waits for a reader, as of a stopped terminal or of a full pipe: up to 64 KiB of lines are
/// kept until they can be written, others are left out and counted. Live where standard error is a terminal.
[[nodiscard]] log_sink standard_error_sink() noexcept;

/// Replaces the sink of the whole program. \returns the one before. Waits for a line that is being written.
log_sink set_log_sink(log_sink sink) noexcept;
/// Lines below `least` are dropped; at first none are. \returns the level before.
log_level set_log_level(log_level least) noexcept;

/// Is the sink live?
[[nodiscard]] bool log_is_live() noexcept;

/// Hands a line to the sink. Any thread may call it.
void log_line(log_level level, std::string_view line) noexcept;
/// The parts as one line, as concat() writes them.
template <class... Parts>
void log(log_level level, Parts const&... parts) noexcept {
  try {
    log_line(level, concat(parts...));
  } catch (...) {}  // no memory for the line
}

/// Writes what the sink of standard error still keeps, and waits for its reader: at the end of a run, and
/// before a program writes to standard error by itself.
void flush_log() noexcept;

}  // namespace superoffload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/core/impl/log_inl.hpp>
#endif
