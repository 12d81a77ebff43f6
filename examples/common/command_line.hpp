// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/environment.hpp>
#include <superoffload/kernel/attention.hpp>
#include <superoffload/train/options.hpp>

#include <optional>
#include <string>
#include <vector>

namespace examples {

enum class device_choice { automatic, cpu, cuda };
enum class precision_choice { float32, bf16 };

/// What a fine-tuner was asked to do.
struct command_line {
  std::vector<std::string> arguments;  ///< as they were given, the program's name first
  superoffload::train::training_options training;
  device_choice device = device_choice::automatic;
  precision_choice precision = precision_choice::bf16;
  superoffload::kernel::attention_implementation attention =
      superoffload::kernel::attention_implementation::automatic;
  bool bind_cores = true;  ///< ranks of a host divide its cores
  /// What whoever started this process as one of several ranks has said; nothing for the only one.
  std::optional<superoffload::comm::environment> run;
};

/// Reads the flags that all fine-tuners share. Nothing when --help or --version was asked for,
/// which is then printed.
/// \throws superoffload::error: bad_input for an unknown flag or a wrong value, device for GPUs that this
/// program was built without.
std::optional<command_line> read_command_line(int argc, char** argv, char const* summary);

}  // namespace examples
