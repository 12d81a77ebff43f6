// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace superoffload::cli {

/// The one of `names` that is the fewest edits away (a character inserted, removed or replaced), the first of
/// several; empty if that takes more than a third of the characters of `word`.
std::string nearest_name(std::string_view word, std::vector<std::string> const& names);

/// One line on what was wrong with the arguments that `app` refused. Of a flag that it does not have it says
/// which one may be meant: the one that other trainers call so, or one of nearly the same name.
std::string refusal_of(CLI::App const& app, CLI::ParseError const& error);

}  // namespace superoffload::cli

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cli/impl/unknown_flags_inl.hpp>
#endif
