// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/host_group.hpp>
#include <superoffload/train/options.hpp>

#include <string>

namespace superoffload::train {

/// Compares, over all ranks, what they were told and the files that they are to read: settings and element
/// type by value, configuration, tokenizer and data by their content, weights by their files' names and
/// sizes.
/// \throws comm::agreed_error(bad_input) that names the setting or file, the rank and what it has, on every
/// rank.
void expect_same_options(comm::host_group const& ranks, training_options const& options,
                         std::string const& element_type);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/shared_run_inl.hpp>
#endif
