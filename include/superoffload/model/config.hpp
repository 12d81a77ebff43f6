// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace superoffload::model {

/// How rotary frequencies are stretched for long contexts.
struct rope_scaling {
  enum class rule { none, llama3 };
  rule kind = rule::none;
  double factor = 1.0;
  double low_frequency_factor = 1.0;
  double high_frequency_factor = 4.0;
  std::int64_t original_positions = 8192;
};

/// What a config.json says of a decoder, every value checked. Sizes in elements.
struct config {
  std::string model_type;
  std::int64_t vocabulary = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t max_positions = 0;
  double rms_norm_epsilon = 1e-5;
  double rope_theta = 10000.0;
  rope_scaling scaling{};
  bool tied_head = false;
};

/// Reads DIRECTORY/config.json of a model type this library has.
/// \throws error(bad_input) naming the field for anything missing, out of range, contradictory or not
/// supported.
config read_config(std::filesystem::path const& directory);

/// head_dim / 2 inverse frequencies, theta^(-2j/head_dim), stretched as the scaling rule says (llama3: the
/// wavelengths beyond original_positions / low_frequency_factor are divided by factor, those below
/// original_positions / high_frequency_factor are kept, in between linearly blended).
std::vector<double> inverse_frequencies(config const& c);

}  // namespace superoffload::model
