// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/planning/plan.hpp>
#include <superoffload/offload/settings.hpp>

#include <string>

namespace superoffload::train {

/// The plan as one JSON object; docs/command-line.md names its fields. Unknown values are null. `machine` is
/// the name of the machine.
std::string to_json(offload::plan const& p, std::string const& machine);

/// Writes the plan as JSON and the picture of its step, if `s` asks for them. A plan that does not fit has no
/// picture. \throws error as io::replace_file().
void write_plan(offload::plan const& p, std::string const& machine, offload::settings const& s);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/planning/impl/plan_file_inl.hpp>
#endif
