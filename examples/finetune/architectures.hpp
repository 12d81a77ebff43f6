// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/command_line.hpp"

namespace examples {

/// Fine-tunes a model of one architecture; each is instantiated in a source of its own.
int finetune_llama(command_line const& command);

}  // namespace examples
