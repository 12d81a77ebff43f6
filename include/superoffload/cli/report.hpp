// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cli/command_line.hpp>
#include <superoffload/train/run/run_summary.hpp>

namespace superoffload::cli {

/// Follows --log_level and --quiet: under the latter, standard output goes nowhere.
/// \throws error(io_failure) if there is no /dev/null.
void set_up_log(command_line const& command);

/// Rank 0 says on standard error what becomes of parts of the command that are other trainers'.
void tell_notes(command_line const& command);

/// Rank 0 says how the run ended and where its results are. \returns the exit code.
int report(train::run_summary const& done);

}  // namespace superoffload::cli

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cli/impl/report_inl.hpp>
#endif
