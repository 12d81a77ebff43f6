// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace superoffload::train {

/// Shows a person how far a run is, on standard error: on a terminal one live line with rate and time left,
/// in a log plain lines. The run never waits for a reader, as of a stopped terminal or of a pipe that is
/// full: lines that stay are kept until they can be written, up to 64 KiB of them, others are left out.
class progress {
public:
  using clock = std::chrono::steady_clock;

  /// `first_step` steps are done already; a plain line every `log_interval` steps.
  progress(std::int64_t first_step, std::int64_t total_steps, std::int64_t log_interval);
  progress(progress const&) = delete;
  progress& operator=(progress const&) = delete;
  ~progress();

  /// A step is done.
  void step(std::int64_t step, double loss, double lr, double tokens_per_second, bool skipped);
  /// A line that stays, such as an evaluation.
  void say(std::string const& line);

private:
  /// Puts a line of what stays behind those that wait to be written.
  void put(std::string const& text);
  /// Writes what can be written without waiting. \returns whether that was all.
  bool flush();
  [[nodiscard]] std::string clear_live_line();

  std::int64_t first_step_, total_steps_, log_interval_;
  clock::time_point start_ = clock::now();
  clock::time_point last_drawn_{};
  bool terminal_;
  bool live_ = false;
  std::string waiting_;        ///< to be written
  std::int64_t left_out_ = 0;  ///< lines for which there was no room
};

/// "1:02:03", "4:05" or "0:07".
std::string clock_text(double seconds);

/// "1.50 GiB", "3.2 MiB", "17 B".
std::string bytes_text(std::size_t bytes);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/progress_inl.hpp>
#endif
