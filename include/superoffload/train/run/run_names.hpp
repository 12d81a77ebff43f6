// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names of files and directories in the output directory of a run.

#include <string_view>

namespace superoffload::train {

/// The identity of the run, and its state at the beginning.
inline constexpr std::string_view record_name = "run.json";
/// Locked by the run that works in the directory.
inline constexpr std::string_view lock_name = "run.lock";

/// A directory: what --report_to writes.
inline constexpr std::string_view reports_name = "reports";

/// Is it the name of an export?
constexpr bool is_export_name(std::string_view name) {
  return name == "model" || name == "model-best" || name.starts_with("model-step-");
}

/// Is it a name that runs use there, exports included?
constexpr bool is_of_runs(std::string_view name) {
  return is_export_name(name) || name == record_name || name == lock_name || name == reports_name ||
         name.starts_with("checkpoint-");
}

}  // namespace superoffload::train
