// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/host_name.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/io/tensorboard_event.hpp>
#include <superoffload/train/reports/report_choice.hpp>
#include <superoffload/train/reports/tensorboard_report.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string>
#include <unistd.h>

namespace superoffload::train {
namespace detail {

SUPEROFFLOAD_INLINE double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// A name behind those of all files in `directory`: readers take the files in the order of their names, which
/// begin with the seconds since 1970.
SUPEROFFLOAD_INLINE std::string next_event_file(std::filesystem::path const& directory) {
  auto seconds = static_cast<std::int64_t>(wall_time());
  for (auto const& name : io::list_directory(directory)) {
    std::int64_t earlier = 0;
    if (name.starts_with(event_file_prefix)) {
      std::from_chars(name.data() + event_file_prefix.size(), name.data() + name.size(), earlier);
    }
    seconds = std::max(seconds, std::min(earlier, seconds + 1'000'000) + 1);
  }
  auto host = host_name();
  std::replace(host.begin(), host.end(), '/', '-');
  return concat(event_file_prefix, seconds, ".", host, ".", ::getpid());
}

/// Text that Markdown shows as it is.
SUPEROFFLOAD_INLINE std::string preformatted(std::string const& text) {
  std::string out = "    ";
  for (char const c : text) {
    out += c;
    if (c == '\n') {
      out += "    ";
    }
  }
  return out;
}

SUPEROFFLOAD_INLINE std::string markdown_table(named_values const& values) {
  std::string out = "| name | value |\n|---|---|\n";
  auto const cell = [](std::string const& text) {
    std::string plain;
    for (char const c : text) {
      plain += std::string_view{"\\|`*_<>[]"}.find(c) == std::string_view::npos ? "" : "\\";
      plain += c == '\n' ? ' ' : c;
    }
    return plain;
  };
  for (auto const& [name, value] : values) { out += "| " + cell(name) + " | " + cell(value) + " |\n"; }
  return out;
}

}  // namespace detail

SUPEROFFLOAD_INLINE tensorboard_report::tensorboard_report(std::filesystem::path const& directory,
                                                           std::int64_t last_step, run_description const& run)
    : gemm_rate_{run.gemm_rate}, file_{directory / detail::next_event_file(directory)} {
  auto const now = detail::wall_time();
  auto const first = std::max<std::int64_t>(0, last_step);
  file_.append(io::tensorboard_event{now, 0}.version().record());
  if (last_step >= 0) {
    file_.append(io::tensorboard_event{now, last_step + 1}.restart().record());
  }
  file_.append(io::tensorboard_event{now, first}
                   .text("settings", detail::markdown_table(run.settings))
                   .text("machine", detail::markdown_table(run.machine))
                   .text("plan", detail::preformatted(run.plan_text))
                   .record());
  write(first, scalars_of(run.plan));
}

SUPEROFFLOAD_INLINE void tensorboard_report::step(step_metrics const& m) {
  write(m.step, scalars_of(m, gemm_rate_));
}
SUPEROFFLOAD_INLINE void tensorboard_report::evaluation(evaluation_metrics const& m) {
  write(m.step, scalars_of(m));
}

SUPEROFFLOAD_INLINE void tensorboard_report::write(std::int64_t step, scalars const& values) {
  io::tensorboard_event event{detail::wall_time(), step};
  for (auto const& [tag, value] : values) { event.scalar(tag, value); }
  file_.append(event.record());
}

}  // namespace superoffload::train
