// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

struct losses {
  double first, last;
};

/// Ten steps of a Llama with the sizes in MODEL_DIRECTORY/config.json, from random weights.
losses train_from_scratch(std::filesystem::path const& model_directory,
                          std::filesystem::path const& instructions);
/// The same for the architecture of own_architecture.hpp, exported to MODEL_DIRECTORY/trained.
losses train_own_architecture(std::filesystem::path const& model_directory,
                              std::filesystem::path const& instructions);
