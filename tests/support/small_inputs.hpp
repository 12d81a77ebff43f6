// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/batch.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace superoffload::test {

/// Weights without a file: a fixed sequence by name and position.
inline void some_weights(std::string const& name, std::int64_t first, std::span<float> to) {
  for (auto& value : to) {
    value = 0.1F * std::sin(static_cast<float>(first++) + static_cast<float>(name.size()));
  }
}

/// A batch of one sequence, whose targets are the next tokens.
inline data::batch batch_of(std::vector<std::int32_t> const& tokens) {
  data::batch b;
  b.tokens = tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    b.positions.push_back(static_cast<std::int32_t>(i));
    b.targets.push_back(i + 1 < tokens.size() ? tokens[i + 1] : -1);
  }
  b.starts = {0, static_cast<std::int32_t>(tokens.size())};
  return b;
}

}  // namespace superoffload::test
