// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/file_lock.hpp>
#include <superoffload/io/train_checkpoint.hpp>
#include <superoffload/train/options.hpp>
#include <superoffload/train/run/run_state.hpp>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace superoffload::train {

/// The output directory of a run, which keeps runs from overwriting each other. A run has an identity, which
/// its checkpoints, its exports and `run.json` carry, and which it keeps when it is resumed. One process of a
/// run has this object for each directory.
class run_directory {
public:
  /// For a run with these options. Changes nothing.
  explicit run_directory(training_options const& options);

  /// Checks that all checkpoints, exports, metrics and reports are the run's own, unless others are to be
  /// removed (overwrite_output). Call it before anything is read that takes long. \throws error(bad_input)
  /// that names what is in the way and what can be done.
  void expect_own() const;

  /// Makes the directory, locks it for the lifetime of this object, and decides the run's identity: `agreed`,
  /// or, if that is empty, that of the resumed run, or a new one. `now`: identity and settings of the run.
  /// \throws error(bad_input) as expect_own(), for metrics or reports of another run, and while another run
  /// has the lock; error(io_failure).
  void claim(run_state const& now, std::string const& agreed = {});

  /// Removes checkpoints and exports of other runs (overwrite_output). \throws error(bad_input), before
  /// anything is removed, for something that no run has written; error(io_failure).
  void remove_others();
  /// Did the constructor, or claim() after it, find checkpoints or exports of other runs?
  [[nodiscard]] bool has_others() const noexcept { return !checkpoints_.empty() || !exports_.empty(); }

  /// Are the directory's reports (train::report_files) of this run? After claim(), before record().
  [[nodiscard]] bool has_own_reports() const noexcept { return run_ == recorded_; }

  /// Writes `run.json`. \throws error.
  void record(run_state const& now) const;

  /// The run's identity, after claim().
  [[nodiscard]] std::string const& run() const noexcept { return run_; }
  /// Why the lock may not keep other processes out (io::file_lock); empty: it does.
  [[nodiscard]] std::string const& weakness() const noexcept { return lock_->weakness(); }

private:
  void look(std::string const& agreed = {});
  [[nodiscard]] bool is_own(std::optional<std::string> const& run) const;
  void expect_metrics_own() const;
  void expect_reports_own() const;

  training_options options_;
  std::optional<io::file_lock> lock_;
  std::string run_;          ///< identity; empty: a new run
  std::string recorded_;     ///< identity of the run that wrote `run.json`; empty: there is none
  bool unnamed_ = false;     ///< checkpoints of earlier versions, without identity, are its own
  bool resumed_ = false;     ///< there is a checkpoint to resume
  std::string not_resumed_;  ///< how an earlier run without a checkpoint differs from this one
  std::vector<io::found_checkpoint> checkpoints_;  ///< of other runs
  std::vector<std::filesystem::path> exports_;     ///< of other runs
};

/// For a rank that has no run_directory: checks that `output` is the directory where another rank has
/// recorded the run `run`, as it is for ranks of one host. `patience`: how long a shared file system may take
/// to show it.
/// \throws error(bad_input).
void expect_shared(std::filesystem::path const& output, std::string const& run,
                   std::chrono::milliseconds patience);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/run_directory_inl.hpp>
#endif
