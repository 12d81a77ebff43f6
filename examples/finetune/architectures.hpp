// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/command_line.hpp"

namespace superoffload::cpu {
class device;
}
namespace superoffload::cuda {
class device;
}

namespace examples {

/// Fine-tunes a model of one architecture; each is instantiated in a source of its own for each device. Those
/// for CUDA are there where EXAMPLES_CUDA is defined.
int finetune_llama(superoffload::cpu::device& device, command_line const& command);
int finetune_llama(superoffload::cuda::device& device, command_line const& command);

/// Plans such a run for the machine that --hardware describes.
int plan_llama(command_line const& command);

}  // namespace examples
