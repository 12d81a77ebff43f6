// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace superoffload::train {

struct training_options;

/// Checks the files that a run writes (metrics, plan, timeline, trace): each replaces a regular file or
/// nothing, and is neither a file that the run reads nor another file that it writes. \throws
/// error(bad_input) that names the flag and the file. Reports go to a directory of their own, from which the
/// run reads nothing.
void expect_outputs_apart(training_options const& options);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/outputs_inl.hpp>
#endif
