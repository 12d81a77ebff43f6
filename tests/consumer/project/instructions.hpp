// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/example_set.hpp>

#include <filesystem>

/// The first `rows` instructions of `file`, tokenized for the model in `model_directory`.
superoffload::data::example_set load_instructions(std::filesystem::path const& model_directory,
                                                  std::filesystem::path const& file, std::size_t rows);
