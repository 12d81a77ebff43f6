// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// What runs call the files and directories in their output directory.
#pragma once

#include <string_view>

namespace superoffload::train {

/// The identity of the run, and what it began with.
inline constexpr std::string_view record_name = "run.json";
/// Held by the run that is at work in the directory.
inline constexpr std::string_view lock_name = "run.lock";

/// Is it the name of something that runs export to?
constexpr bool is_export_name(std::string_view name) {
  return name == "model" || name == "model-best" || name.starts_with("model-step-");
}

/// Is it the name of something that runs have there, exports included?
constexpr bool is_of_runs(std::string_view name) {
  return is_export_name(name) || name == record_name || name == lock_name || name.starts_with("checkpoint-");
}

}  // namespace superoffload::train
