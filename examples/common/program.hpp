// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace examples {

/// What --version prints, without the end of the line.
std::string version_line(std::string const& name);

/// What every program does at its edge: it makes sure that descriptors 0 to 2 are taken, has writes fail
/// instead of ending the process, calls body(), and turns what that throws, once for all ranks that throw the
/// same, into one line on standard error and the documented exit code; what ends in std::terminate, too.
int run_program(char const* name, int (*body)(int, char**), int argc, char** argv);

}  // namespace examples
