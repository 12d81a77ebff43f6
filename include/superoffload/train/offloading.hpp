// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/offload/arrangement.hpp>
#include <superoffload/offload/settings.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace superoffload::train {

/// The arrangement that a user's settings ask for, with `ratio` of the state off the device.
/// `element_bytes`: of a working weight. `immediate`: there is no clipping, and a step that is not finite
/// ends the run, so that nothing has to wait for the verdict.
offload::arrangement arrange(offload::settings const& settings, double ratio,
                             std::vector<autograd::unit_layout> const& units, std::size_t element_bytes,
                             bool immediate);

/// What an arrangement means, in a line; empty where all state is on the device.
std::string describe(offload::arrangement const& a);

}  // namespace superoffload::train
