// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/planning/machine.hpp>

#include <filesystem>
#include <string>

namespace superoffload::train {

/// Reads the description of a machine, as bench/hardware/README.md says: JSON, every field present, none
/// unknown. What ranks exchange by must be there for a plan of several `ranks` only.
/// \throws error(bad_input) naming file and field.
offload::machine read_machine(std::filesystem::path const& file, int ranks = 1);

/// Such a description, in one line. `source` says where the figures come from.
std::string to_json(offload::machine const& m, std::string const& source);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/planning/impl/machine_file_inl.hpp>
#endif
