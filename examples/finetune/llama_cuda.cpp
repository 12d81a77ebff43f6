// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>
#include <superoffload/cuda/nvtx.hpp>
#include <superoffload/model/llama.hpp>

#include "finetune/architectures.hpp"
#include "finetune/run.hpp"

namespace examples {

int finetune_llama(superoffload::cuda::device& device, command_line const& command) {
  namespace so = superoffload;
#ifdef EXAMPLES_NVTX
  using profile = so::profile::nvtx;
#else
  using profile = so::profile::none;
#endif
  return finetune<so::model::llama, so::cuda::device, profile>(device, command);
}

}  // namespace examples
