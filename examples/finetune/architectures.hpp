// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/command_line.hpp"
#include "common/ranks.hpp"

// Each architecture is instantiated in a source of its own for each device, and in one for plans. Those for
// CUDA are there where EXAMPLES_CUDA is defined.
#ifdef EXAMPLES_CUDA
#define EXAMPLES_ON_CUDA(NAME) finetune_##NAME
#else
#define EXAMPLES_ON_CUDA(NAME) nullptr
#endif
#define EXAMPLES_ARCHITECTURE(NAME)                                                                      \
  int finetune_##NAME(cpu_device& device, rank_group<cpu_device>* group, command_line const& command);   \
  int finetune_##NAME(cuda_device& device, rank_group<cuda_device>* group, command_line const& command); \
  int plan_##NAME(command_line const& command);                                                          \
  inline constexpr architecture of_##NAME{#NAME, finetune_##NAME, EXAMPLES_ON_CUDA(NAME), plan_##NAME};

namespace examples {

/// What a program can do with the models of one architecture.
struct architecture {
  char const* model_type;
  /// Fine-tune on a device, alone where `group` is null, or as a rank of it.
  int (*on_cpu)(cpu_device& device, rank_group<cpu_device>* group, command_line const& command);
  int (*on_cuda)(cuda_device& device, rank_group<cuda_device>* group, command_line const& command);
  /// Plan such a run for the machine that --hardware describes.
  int (*plan)(command_line const& command);
};

EXAMPLES_ARCHITECTURE(llama)
EXAMPLES_ARCHITECTURE(mistral)
EXAMPLES_ARCHITECTURE(phi3)
EXAMPLES_ARCHITECTURE(qwen3)
EXAMPLES_ARCHITECTURE(qwen3_moe)
EXAMPLES_ARCHITECTURE(seed_oss)
EXAMPLES_ARCHITECTURE(gpt_oss)

/// All of them.
inline constexpr architecture architectures[] = {of_llama,     of_mistral,  of_phi3,   of_qwen3,
                                                 of_qwen3_moe, of_seed_oss, of_gpt_oss};

}  // namespace examples

#undef EXAMPLES_ARCHITECTURE
#undef EXAMPLES_ON_CUDA
