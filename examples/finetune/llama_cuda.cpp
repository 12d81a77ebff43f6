// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>
#include <superoffload/model/llama.hpp>

#include "finetune/architectures.hpp"
#include "finetune/run.hpp"

namespace examples {

int finetune_llama(superoffload::cuda::device& device, command_line const& command) {
  return finetune<superoffload::model::llama>(device, command);
}

}  // namespace examples
