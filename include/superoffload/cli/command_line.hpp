// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/environment.hpp>
#include <superoffload/core/log.hpp>
#include <superoffload/kernel/attention.hpp>
#include <superoffload/train/options.hpp>

#include <optional>
#include <string>
#include <vector>

namespace superoffload::cli {

enum class device_choice { automatic, cpu, cuda };
enum class precision_choice { float32, bf16, fp8 };

/// What a fine-tuner was asked to do.
struct command_line {
  std::vector<std::string> arguments;               ///< as they were given, the program's name first
  train::training_options training;                 ///< every flag of training, checked
  device_choice device = device_choice::automatic;  ///< automatic: a GPU where one can be used, else the CPU
  precision_choice precision = precision_choice::bf16;  ///< of weights, activations and gradients
  /// For GPUs; the CPU takes `automatic` only.
  kernel::attention_implementation attention = kernel::attention_implementation::automatic;
  log_level least = log_level::status;  ///< less important lines are not shown
  bool quiet = false;                   ///< neither are the lines of standard output
  bool bind_cores = true;               ///< ranks of a host divide its cores
  /// The rank that the launcher made of this process; nothing for a process without other ranks.
  std::optional<comm::environment> run;
  std::vector<std::string> notes;  ///< lines for the user: what becomes of flags and of --deepspeed_config
};

/// Does the command only ask for a plan for the machine that --hardware describes?
inline bool plans_only(command_line const& command) {
  return command.training.dry_run && !command.training.offload.hardware.empty();
}

/// The GPUs that a program is built for.
struct gpu_support {
  /// Can it compute on a GPU?
  bool cuda = false, nccl = false;  ///< can ranks have a GPU each?
};
/// The GPUs that this translation unit is built for. superoffload::compiled_cli is built without them, so
/// callers pass this on.
constexpr gpu_support built_for{
#ifdef SUPEROFFLOAD_HAS_CUDA
    .cuda = true,
#endif
#ifdef SUPEROFFLOAD_HAS_NCCL
    .nccl = true,
#endif
};

/// Reads the flags that all fine-tuners share. Returns nothing after --help or --version, which it prints.
/// \throws superoffload::error: bad_input for an unknown flag or a wrong value, device for GPUs that
/// `built` lacks.
std::optional<command_line> read_command_line(int argc, char** argv, char const* summary,
                                              gpu_support const& built = built_for);

}  // namespace superoffload::cli

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cli/impl/command_line_inl.hpp>
#endif
