// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/model/llama.hpp>

#include "finetune/architectures.hpp"
#include "finetune/run.hpp"

namespace examples {

int finetune_llama(command_line const& command) { return finetune<superoffload::model::llama>(command); }

}  // namespace examples
