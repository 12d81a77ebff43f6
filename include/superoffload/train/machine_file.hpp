// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/machine.hpp>

#include <filesystem>

namespace superoffload::train {

/// Reads the description of a machine, as bench/hardware/README.md says: JSON, every field present, none
/// unknown.
/// \throws error(bad_input) naming file and field.
offload::machine read_machine(std::filesystem::path const& file);

}  // namespace superoffload::train
