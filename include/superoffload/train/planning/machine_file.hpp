// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/planning/machine.hpp>

#include <filesystem>
#include <string>

namespace superoffload::train {

/// Reads the description of a machine (bench/hardware/README.md): JSON, with every field and no unknown ones.
/// The rates of collectives are needed only for a plan of several `ranks`; with `peers.network` they are
/// those of as many hosts as the ranks need.
/// \throws error(bad_input) that names file and field.
offload::machine read_machine(std::filesystem::path const& file, int ranks = 1);

/// Such a description, in one line. `source` is where the figures come from.
std::string to_json(offload::machine const& m, std::string const& source);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/planning/impl/machine_file_inl.hpp>
#endif
