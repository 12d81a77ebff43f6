// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/file_lock.hpp>
#include <superoffload/io/train_checkpoint.hpp>
#include <superoffload/train/options.hpp>
#include <superoffload/train/run/run_state.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace superoffload::train {

/// The output directory of a run, where runs do not eat each other: each has an identity, which its
/// checkpoints and exports carry and `run.json` says, and which it keeps when it is resumed. One process of a
/// run has this.
class run_directory {
public:
  /// Of a run with these options. Changes nothing.
  explicit run_directory(training_options const& options);

  /// Are its own all the checkpoints, exports and metrics, or are others to be removed (overwrite_output)?
  /// For asking before anything is read that takes long. \throws error(bad_input) that names what is in the
  /// way and what can be done.
  void expect_own() const;

  /// Makes the directory and locks it for as long as this lives, and settles which run this is: that of what
  /// it resumes, or a new one. `now`: identity and settings of the run.
  /// \throws error(bad_input) as expect_own(), for metrics of another run, and when another run is going on
  /// there, error(io_failure).
  void claim(run_state const& now);

  /// Removes what overwrite_output asks for. \throws error(bad_input), before anything is removed, for what
  /// no run has written, error(io_failure).
  void remove_others();
  [[nodiscard]] bool has_others() const noexcept { return !checkpoints_.empty() || !exports_.empty(); }

  /// Writes down which run it is. \throws error.
  void record(run_state const& now) const;

  /// Its identity, once it has claimed the directory.
  [[nodiscard]] std::string const& run() const noexcept { return run_; }
  /// What keeps other processes out, or why nothing does: see io::file_lock.
  [[nodiscard]] std::string const& weakness() const noexcept { return lock_->weakness(); }

private:
  void look();
  [[nodiscard]] bool is_own(std::optional<std::string> const& run) const;
  void expect_metrics_own() const;

  training_options options_;
  std::optional<io::file_lock> lock_;
  std::string run_;          ///< empty: a new one
  bool unnamed_ = false;     ///< what an earlier version has saved here is its own
  bool resumed_ = false;     ///< there is a checkpoint to go on from
  std::string not_resumed_;  ///< how a run that left no checkpoint differs from this one
  std::vector<io::found_checkpoint> checkpoints_;  ///< of others
  std::vector<std::filesystem::path> exports_;     ///< of others
};

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/run_directory_inl.hpp>
#endif
