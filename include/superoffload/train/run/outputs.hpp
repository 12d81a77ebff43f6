// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace superoffload::train {

struct training_options;

/// May the files that a run is told to write (metrics, plan, timeline, trace) be written where they are
/// named? Each replaces a regular file or nothing, and is neither a file that the run reads, nor another one
/// that it writes. \throws error(bad_input) naming the flag and the file.
void expect_outputs_apart(training_options const& options);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/outputs_inl.hpp>
#endif
