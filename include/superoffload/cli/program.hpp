// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace superoffload::cli {

/// The last part of argv[0], with which a program's error lines begin.
char const* program_name(int argc, char** argv);

/// The line that --version prints, without its end.
std::string version_line(std::string const& name);

/// Runs a program. Opens descriptors 0 to 2 if they are closed, lets failed writes return an error instead of
/// ending the process, and calls body(). Turns an exception, also one that ends in std::terminate, into one
/// line on standard error and the documented exit code; ranks that throw the same print one line together.
/// Standard output that could not be written, as on a full disk, is an error at the end, too, but not one
/// whose reader has gone, as with `| head`. The line begins with `name`, which must outlive the program's
/// threads.
int run_program(char const* name, std::function<int(int, char**)> const& body, int argc, char** argv);

}  // namespace superoffload::cli

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cli/impl/program_inl.hpp>
#endif
