// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/model/llama.hpp>

#include "finetune/architectures.hpp"
#include "finetune/plan.hpp"

namespace examples {

int plan_llama(command_line const& command) { return plan_described<superoffload::model::llama>(command); }

}  // namespace examples
