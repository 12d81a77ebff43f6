// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/train/reports/report_choice.hpp>
#include <superoffload/train/run/run_names.hpp>

#include <string>
#include <system_error>
#include <utility>

namespace superoffload::train {

SUPEROFFLOAD_INLINE report_choice parse_report_choice(std::string_view list) {
  report_choice chosen;
  if (list == "none") {
    return chosen;
  }
  for (auto rest = list;;) {
    auto const name = rest.substr(0, rest.find(','));
    expect(name == "tensorboard" || name == "wandb" || name == "jsonl" || name == "html",
           exit_code::bad_input, "--report_to has '", printable(name, 40),
           "', expected none, or some of tensorboard, wandb, jsonl and html with commas between them");
    chosen.tensorboard |= name == "tensorboard";
    chosen.wandb |= name == "wandb";
    chosen.jsonl |= name == "jsonl";
    chosen.html |= name == "html";
    if (name.size() == rest.size()) {
      return chosen;
    }
    rest.remove_prefix(name.size() + 1);
  }
}

SUPEROFFLOAD_INLINE report_files::report_files(std::filesystem::path const& output)
    : directory{output / reports_name},
      lines{directory / "metrics.jsonl"},
      events{directory / "tensorboard"},
      wandb{directory / "wandb"},
      page{directory / "report.html"} {}

SUPEROFFLOAD_INLINE std::vector<std::filesystem::path> report_files::existing() const {
  std::vector<std::filesystem::path> found;
  auto const is_own_directory =
      [](std::filesystem::path const& path) {  // what is behind a link is not the run's
        std::error_code failure;
        return std::filesystem::is_directory(std::filesystem::symlink_status(path, failure));
      };
  if (!is_own_directory(directory)) {
    return found;
  }
  for (auto const& file : {lines, page}) {
    std::error_code failure;
    if (std::filesystem::exists(std::filesystem::symlink_status(file, failure))) {
      found.push_back(file);
    }
  }
  for (auto const& [place, prefix] : {std::pair{events, event_file_prefix}, {wandb, offline_run_prefix}}) {
    for (auto const& name :
         is_own_directory(place) ? io::list_directory(place) : std::vector<std::string>{}) {
      if (name.starts_with(prefix)) {
        found.push_back(place / name);
      }
    }
  }
  return found;
}

SUPEROFFLOAD_INLINE void report_files::remove() const {
  for (auto const& file : existing()) { io::remove_tree(file); }
}

SUPEROFFLOAD_INLINE void report_files::expect_writable() const {
  for (auto const& path : {directory, events, wandb}) {
    std::error_code failure;
    auto const what = std::filesystem::symlink_status(path, failure);
    expect(!std::filesystem::exists(what) || std::filesystem::is_directory(what), exit_code::bad_input,
           io::shown(path), ": is no directory, expected one, or nothing, for the reports of --report_to");
  }
  for (auto const& file : existing()) {
    if (file.parent_path() != wandb) {
      io::expect_replaceable_file(file);
    }
  }
}

}  // namespace superoffload::train
