// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/train/options.hpp>
#include <superoffload/train/reports/report_choice.hpp>
#include <superoffload/train/run/outputs.hpp>
#include <superoffload/train/run/run_names.hpp>

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace superoffload::train {
namespace detail {

namespace fs = std::filesystem;
using named_paths = std::vector<std::pair<char const*, fs::path>>;

/// The path without links; the file need not exist.
SUPEROFFLOAD_INLINE fs::path resolved(fs::path const& path) {
  std::error_code failure;
  auto const absolute = fs::absolute(path, failure);
  auto whole = fs::weakly_canonical(absolute, failure);
  return failure ? absolute : whole;
}

SUPEROFFLOAD_INLINE bool are_same(fs::path const& a, fs::path const& b) {
  std::error_code failure;
  return fs::equivalent(a, b, failure) || resolved(a) == resolved(b);
}

/// The flags whose files are read, and the files themselves.
SUPEROFFLOAD_INLINE named_paths inputs_of(training_options const& o) {
  named_paths inputs;
  auto const add = [&](char const* flag, fs::path const& path) {
    if (!path.empty()) {
      inputs.emplace_back(flag, path);
    }
  };
  for (auto const& set : o.dataset) { add("--dataset", set.path); }
  add("--eval_dataset", o.eval_dataset);
  add("--deepspeed_config", o.deepspeed_config);
  add("--hardware", o.offload.hardware);
  named_paths directories{{"--model", o.model}, {"--resume", o.resume}};
  directories.insert(directories.end(), inputs.begin(), inputs.end());
  for (auto const& [flag, directory] : directories) {
    std::error_code failure;
    if (fs::is_directory(directory, failure)) {
      for (auto const& name : io::list_directory(directory)) { add(flag, directory / name); }
    }
  }
  return inputs;
}

/// Reports replace and continue only what a run has written.
SUPEROFFLOAD_INLINE void expect_reports_apart(training_options const& o) {
  report_files const files{o.output};
  files.expect_writable();
  for (auto const& [input, file] : inputs_of(o)) {
    auto const below = resolved(file).lexically_relative(resolved(files.directory));
    expect(below.empty() || *below.begin() == "..", exit_code::bad_input,
           "--report_to: ", io::shown(files.directory), " has what ", input, " reads, ", io::shown(file),
           "; expected another --output_dir");
  }
}

}  // namespace detail

SUPEROFFLOAD_INLINE void expect_outputs_apart(training_options const& o) {
  expect(o.output.empty() || o.dry_run || !detail::are_same(o.output, o.model), exit_code::bad_input,
         "--output_dir: ", io::shown(o.output),
         ": is the directory of --model, too; expected one of its own: a run saves and exports there");
  if (o.report_to.any() && !o.output.empty()) {
    detail::expect_reports_apart(o);
  }
  detail::named_paths outputs;
  for (auto const& [flag, path] : detail::named_paths{{"--plan", o.offload.plan},
                                                      {"--timeline", o.offload.timeline},
                                                      {"--metrics", o.metrics},
                                                      {"--trace", o.trace}}) {
    if (path.empty()) {
      continue;
    }
    auto const where = concat(flag, ": ", io::shown(path));
    for (auto const& [other, file] : outputs) {
      expect(!detail::are_same(path, file), exit_code::bad_input, where, ": is the file of ", other,
             ", too; expected a file of its own");
    }
    outputs.emplace_back(flag, path);
    for (auto const& [input, file] : detail::inputs_of(o)) {
      expect(!detail::are_same(path, file), exit_code::bad_input, where, ": would replace what ", input,
             " reads; expected another file");
    }
    io::expect_replaceable_file(path);
    auto const below = detail::resolved(path).lexically_relative(detail::resolved(o.output));
    expect(o.output.empty() || below.empty() || !is_of_runs(below.begin()->native()), exit_code::bad_input,
           where, ": is where the run has its checkpoints, exports and their files; expected another name");
  }
}

}  // namespace superoffload::train
