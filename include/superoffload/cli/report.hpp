// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cli/command_line.hpp>
#include <superoffload/train/run/run_summary.hpp>

namespace superoffload::cli {

/// Says on standard error what of the command has no effect, once for all ranks.
void tell_note(command_line const& command);

/// Says how a run has ended and where its results are, unless this is not the first rank. \returns the exit
/// code.
int report(train::run_summary const& done);

}  // namespace superoffload::cli

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cli/impl/report_inl.hpp>
#endif
