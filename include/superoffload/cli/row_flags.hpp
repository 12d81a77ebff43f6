// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/train/options.hpp>

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}

namespace superoffload::cli {

/// The arguments for CLI::App::parse. --like-this and --like_this are the same flag, and so are its names.
/// \throws error(bad_input) for an empty argument
std::vector<std::string> normalized(int argc, char** argv);

/// Adds --follow_links, which is about all directories that are read. `options` outlives `app`.
CLI::Option* add_follow_links(CLI::App& app, train::training_options& options);

/// Adds the flags for the rows of a data set and how they become ids. `options` outlives `app`.
void add_row_flags(CLI::App& app, train::training_options& options, char const* group);

}  // namespace superoffload::cli

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cli/impl/row_flags_inl.hpp>
#endif
