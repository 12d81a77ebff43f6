// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/io/hub_export.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/train/reports/report_choice.hpp>
#include <superoffload/train/run/metrics.hpp>
#include <superoffload/train/run/run_directory.hpp>
#include <superoffload/train/run/run_names.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace superoffload::train {
namespace detail {

namespace fs = std::filesystem;

inline constexpr std::size_t most_record_bytes = std::size_t{16} << 20;  // it may contain a whole config.json
inline constexpr auto choices = "choose another --output_dir, or have it removed (--overwrite_output_dir)";

struct run_record {
  std::string run;
  run_state began;
};

SUPEROFFLOAD_INLINE std::optional<run_record> read_record(fs::path const& output) {
  auto const file = output / record_name;
  std::error_code failure;
  if (!fs::exists(fs::symlink_status(file, failure))) {
    return std::nullopt;
  }
  auto const origin = io::shown(file);
  auto const document = io::read_json(file, {.bytes = most_record_bytes});
  io::json_field const root{document, origin};
  return run_record{root["run"].text(), parse_run_state(root["state"].raw().dump(), origin)};
}

/// An identity becomes part of file names, so one that others wrote must be none of another kind.
SUPEROFFLOAD_INLINE void expect_identity(std::string const& run, fs::path const& from) {
  expect(run.empty() || (run.size() == 32 && run.find_first_not_of("0123456789abcdef") == run.npos),
         exit_code::bad_input, io::shown(from), ": the run's identity is '", printable(run, 60),
         "', expected 32 hexadecimal digits; the file was not written by a run");
}

/// Exports in `output`, and the runs that wrote them.
SUPEROFFLOAD_INLINE std::vector<std::pair<fs::path, std::string>> exports_in(fs::path const& output) {
  std::vector<std::pair<fs::path, std::string>> found;
  for (auto const& name : io::list_directory(output)) {
    if (is_export_name(name)) {
      if (auto run = io::exported_run(output / name)) {
        found.emplace_back(output / name, *std::move(run));
      }
    }
  }
  return found;
}

SUPEROFFLOAD_INLINE bool is_in(fs::path const& file, fs::path const& directory) {
  std::error_code failure;
  return fs::equivalent(fs::weakly_canonical(file, failure).parent_path(), directory, failure);
}

}  // namespace detail

SUPEROFFLOAD_INLINE run_directory::run_directory(training_options const& options) : options_{options} {
  look();
}

SUPEROFFLOAD_INLINE bool run_directory::is_own(std::optional<std::string> const& run) const {
  if (options_.resume.empty()) {
    return false;
  }
  return !run || (run->empty() ? unnamed_ : *run == run_);
}

SUPEROFFLOAD_INLINE void run_directory::look(std::string const& agreed) {
  run_.clear();
  not_resumed_.clear();
  unnamed_ = resumed_ = false;
  checkpoints_.clear();
  exports_.clear();
  auto const record = detail::read_record(options_.output);  // throws for a file that is no record
  recorded_ = record ? record->run : std::string{};
  detail::expect_identity(recorded_, options_.output / record_name);
  auto const found = io::checkpoints_in(options_.output);
  auto last = std::numeric_limits<std::int64_t>::max();
  if (options_.resume == "auto") {
    resumed_ = !found.empty();
    if (record) {
      run_ = record->run;
    } else {
      auto const newest =
          std::find_if(found.rbegin(), found.rend(), [](auto const& c) { return c.run && !c.run->empty(); });
      run_ = newest == found.rend() ? std::string{} : *newest->run;
      detail::expect_identity(run_, newest == found.rend() ? options_.output : newest->directory);
    }
  } else if (!options_.resume.empty()) {
    auto const from = io::checkpoint_reader::open(options_.resume);
    resumed_ = true;
    run_ = from.run();
    detail::expect_identity(run_, from.directory());
    last = from.step();
    unnamed_ = run_.empty() && detail::is_in(options_.resume, options_.output);
  }
  if (!agreed.empty()) {
    run_ = agreed;
  }
  for (auto const& checkpoint : found) {
    if (!is_own(checkpoint.run) || checkpoint.step > last) {
      checkpoints_.push_back(checkpoint);
    }
  }
  for (auto const& [directory, run] : detail::exports_in(options_.output)) {
    if (run.empty() || !is_own(run)) {
      exports_.push_back(directory);
    }
  }
}

SUPEROFFLOAD_INLINE void run_directory::expect_own() const {
  if (options_.overwrite_output) {
    return;
  }
  if (!has_others()) {
    if (options_.resume.empty()) {
      expect_metrics_own();
      expect_reports_own();
    }
    return;
  }
  constexpr std::size_t most_named = 3;
  std::vector<std::string> names;
  for (auto const& checkpoint : checkpoints_) { names.push_back(checkpoint.directory.filename()); }
  for (auto const& directory : exports_) { names.push_back(directory.filename()); }
  std::string what;
  for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), most_named); ++i) {
    what += (what.empty() ? "" : ", ") + names[i];
  }
  if (names.size() > most_named) {
    what += concat(" and ", names.size() - most_named, " more");
  }
  auto const output = io::shown(options_.output);
  if (options_.resume.empty()) {
    fail(exit_code::bad_input, output, ": holds ", what,
         " of an earlier run; go on with that run (--resume auto), ", detail::choices);
  }
  if (options_.resume != "auto") {
    fail(exit_code::bad_input, output, ": holds ", what, ", which the run that goes on from ",
         io::shown(options_.resume), " does not continue; ", detail::choices);
  }
  for (auto const& checkpoint : checkpoints_) {
    auto const path = io::shown(checkpoint.directory);
    expect(!checkpoint.run->empty(), exit_code::bad_input, path,
           ": does not say which run saved it, as it is of an earlier version; --resume ", path,
           " goes on from it");
  }
  fail(exit_code::bad_input, output, ": holds ", what, " of another run than the one to go on with",
       not_resumed_.empty() ? "" : concat(": ", not_resumed_),
       "; --resume DIR goes on from a checkpoint that you name, and without --resume you can ",
       detail::choices);
}

SUPEROFFLOAD_INLINE void run_directory::expect_metrics_own() const {
  if (options_.metrics.empty() || !has_content(options_.metrics) || options_.overwrite_output || resumed_ ||
      !run_.empty()) {
    return;
  }
  fail(exit_code::bad_input, io::shown(options_.metrics),
       ": holds the metrics of an earlier run; go on with that run (--resume auto), name another file for "
       "--metrics, or have it emptied (--overwrite_output_dir)");
}

SUPEROFFLOAD_INLINE void run_directory::expect_reports_own() const {
  if (options_.overwrite_output || (!run_.empty() && has_own_reports())) {
    return;
  }
  auto const reports = report_files{options_.output}.existing();
  expect(reports.empty(), exit_code::bad_input, reports.empty() ? std::string{} : io::shown(reports.front()),
         ": is a report of an earlier run; go on with that run (--resume auto), ", detail::choices);
}

SUPEROFFLOAD_INLINE void run_directory::claim(run_state const& now, std::string const& agreed) {
  io::make_directories(options_.output);
  if (!lock_) {
    auto lock = io::file_lock::acquire(options_.output / lock_name);
    expect(lock.has_value(), exit_code::bad_input, io::shown(options_.output),
           ": another run is going on in this directory; wait for its end, or choose another --output_dir");
    lock_.emplace(*std::move(lock));
  }
  look(agreed);
  if (options_.resume == "auto" && !resumed_ && agreed.empty()) {
    // A run without a checkpoint starts anew under its identity, if its settings are the same.
    auto const record = detail::read_record(options_.output);
    if (record) {
      auto saved = record->began.identity, own = now.identity;
      saved.insert(saved.end(), record->began.settings.begin(), record->began.settings.end());
      own.insert(own.end(), now.settings.begin(), now.settings.end());
      not_resumed_ = differences(saved, own);
    }
    if (!record || !not_resumed_.empty()) {
      run_.clear();
      exports_.clear();
      for (auto const& [directory, run] : detail::exports_in(options_.output)) {
        exports_.push_back(directory);
      }
    }
  }
  expect_own();
  expect_metrics_own();
  expect_reports_own();
  if (run_.empty()) {
    run_ = io::random_suffix() + io::random_suffix();
  }
}

SUPEROFFLOAD_INLINE void run_directory::remove_others() {
  for (auto const& directory : std::exchange(exports_, {})) { io::remove_export(directory); }
  io::remove_checkpoints(std::exchange(checkpoints_, {}));
}

SUPEROFFLOAD_INLINE void run_directory::record(run_state const& now) const {
  io::json const record{{"run", run_}, {"state", io::json::parse(to_json(now))}};
  io::replace_file(options_.output / record_name, record.dump(1) + "\n");
}

SUPEROFFLOAD_INLINE void expect_shared(std::filesystem::path const& output, std::string const& run,
                                       std::chrono::milliseconds patience) {
  using clock = std::chrono::steady_clock;
  auto const sees = [&] {
    // To list a directory makes a network file system ask its server: it may still believe that a file is
    // missing.
    auto const names = io::list_directory(output);
    if (!std::ranges::binary_search(names, record_name)) {
      return false;
    }
    auto const found = detail::read_record(output);
    return found && found->run == run;
  };
  for (auto const begin = clock::now(); !sees();) {
    expect(clock::now() - begin < patience, exit_code::bad_input, io::shown(output), ": the ", record_name,
           " of rank 0 is not here; expected a directory that all hosts share, where every rank writes its "
           "part of a checkpoint, or --save_on_each_node, with which each host has its own");
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
  }
}

}  // namespace superoffload::train
