// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/io/hub.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace superoffload::train {

/// Does the checkpoint hold every tensor of the model in its shape? Extra tensors are allowed only where the hub's
/// layouts have them (a tied head stored all the same, rotary frequencies).
/// \throws error(bad_input) naming the first tensor that is missing, misshapen or unknown.
void expect_tensors(std::vector<autograd::unit_layout> const& units, io::hub_checkpoint const& checkpoint);

}  // namespace superoffload::train
