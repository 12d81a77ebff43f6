// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cli/command_line.hpp>
#include <superoffload/train/run/run_summary.hpp>

namespace superoffload::cli {

/// Rank 0 says on standard error which parts of the command have no effect.
void tell_note(command_line const& command);

/// Rank 0 says how the run ended and where its results are. \returns the exit code.
int report(train::run_summary const& done);

}  // namespace superoffload::cli

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cli/impl/report_inl.hpp>
#endif
