// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/cuda/device.hpp>
#include <superoffload/kernel/attention.hpp>

#include <string>

namespace superoffload::cudnn {

#if defined(SUPEROFFLOAD_HAS_CUDNN)
/// Lets `device` use cuDNN for attention with this shape's heads; with `by_name`, only if cuDNN computes the
/// whole shape. Returns an empty string, or, with nothing changed, why it cannot.
std::string attend(cuda::device& device, kernel::attention_shape const& shape, bool sinks, bool by_name);
#else
inline std::string attend(cuda::device&, kernel::attention_shape const&, bool, bool) {
  return "this program was built without superoffload::cudnn; build it where cuDNN and its front end are "
         "found "
         "(CMake says what is missing with SUPEROFFLOAD_CUDNN=ON)";
}
#endif

/// Chooses the attention kernels of `device` for a model with the heads and the window of `shape`, and
/// batches up to its size. Call it before any plan is made. `automatic` is the faster one: the device's own
/// on Hopper, for the heads that they support, else cuDNN's. Works without the component, too. Returns why
/// cuDNN is not used although it might have been, else an empty string.
/// \throws error(device) when cuDNN was asked for by name and is missing or does not support such a batch. A
/// later batch that it does not compute, such as one of very many documents, is noted on standard error,
/// once.
inline std::string choose_attention(cuda::device& device, kernel::attention_implementation wanted,
                                    kernel::attention_shape const& shape, bool sinks, bool in_bfloat16) {
  device.attend_with(nullptr);
  bool const automatic = wanted == kernel::attention_implementation::automatic;
  if (wanted == kernel::attention_implementation::flash ||
      (automatic && (!in_bfloat16 || cuda::has_hopper_attention(device, shape.head_dim)))) {
    return {};
  }
  auto reason = in_bfloat16 ? attend(device, shape, sinks, !automatic)
                            : "cuDNN's attention is in bfloat16: use --dtype bf16";
  expect(reason.empty() || automatic, exit_code::device, "--attn_implementation cudnn: ", reason);
  return reason;
}

}  // namespace superoffload::cudnn
