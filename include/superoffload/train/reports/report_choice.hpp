// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::train {

/// The reports of a run that --report_to chooses.
struct report_choice {
  /// @{
  /// Is this one written?
  bool tensorboard = false, wandb = false, jsonl = false, html = false;
  /// @}

  /// Is any of them written?
  [[nodiscard]] bool any() const noexcept { return tensorboard || wandb || jsonl || html; }
};

/// What a run is called at Weights & Biases.
struct wandb_names {
  std::string project = "superoffload";  ///< to which `wandb sync` uploads unless told otherwise
  std::string run;                       ///< empty: named after the model
  std::vector<std::string> tags;         ///< of the run
};

/// The choice for a list such as "tensorboard,html"; none: no report.
/// \throws error(bad_input) that names what is no report.
report_choice parse_report_choice(std::string_view list);

/// How the names of TensorBoard's event files begin.
inline constexpr std::string_view event_file_prefix = "events.out.tfevents.";

/// How the names of directories of offline runs of Weights & Biases begin.
inline constexpr std::string_view offline_run_prefix = "offline-run-";

/// The files of reports, in the output directory of a run.
struct report_files {
  /// Of a run with this output directory. Touches no file.
  explicit report_files(std::filesystem::path const& output);

  std::filesystem::path directory;  ///< of all of them
  std::filesystem::path
      lines;  ///< of jsonl, and of html, which is drawn anew from them after an interruption
  std::filesystem::path events;  ///< TensorBoard's directory
  std::filesystem::path wandb;   ///< directory of the offline runs of Weights & Biases
  std::filesystem::path page;    ///< of html

  /// Those that exist; files of other names are no reports.
  [[nodiscard]] std::vector<std::filesystem::path> existing() const;
  /// Removes existing(). \throws error(io_failure)
  void remove() const;
  /// \throws error(bad_input) unless files can be written there: regular files in directories that are no
  /// links.
  void expect_writable() const;
};

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/reports/impl/report_choice_inl.hpp>
#endif
