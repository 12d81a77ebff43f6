// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace superoffload::cli {

/// How errors of a program begin: the last part of argv[0].
char const* program_name(int argc, char** argv);

/// What --version prints, without the end of the line.
std::string version_line(std::string const& name);

/// What every program does at its edge: it makes sure that descriptors 0 to 2 are taken, has writes fail
/// instead of ending the process, calls body(), and turns what that throws, once for all ranks that throw the
/// same, into one line on standard error and the documented exit code; what ends in std::terminate, too.
/// `name` begins that line, and lives on.
int run_program(char const* name, std::function<int(int, char**)> const& body, int argc, char** argv);

}  // namespace superoffload::cli

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cli/impl/program_inl.hpp>
#endif
