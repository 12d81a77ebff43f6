// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// A view does not own its model.
// error: use of deleted function
#include <superoffload/cpu/device.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/model/view.hpp>

namespace so = superoffload;

so::model::view<so::cpu::device, float> const view{so::model::llama{so::model::config{}}};
