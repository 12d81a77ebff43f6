// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/host_group.hpp>
#include <superoffload/train/options.hpp>

#include <string>

namespace superoffload::train {

/// Compares the options and input files of all ranks: settings and element type by value; configuration,
/// tokenizer and data by content; weights by their files' names and sizes.
/// \throws comm::agreed_error(bad_input) on every rank, that names the setting or file, the rank and its
/// value.
void expect_same_options(comm::host_group const& ranks, training_options const& options,
                         std::string const& element_type);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/shared_run_inl.hpp>
#endif
