// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// error: a model architecture must have what model::architecture asks for
#include <superoffload/train/engine.hpp>

#include <string>
#include <vector>

namespace so = superoffload;

struct own {
  using policy_category = so::category::architecture;
  explicit own(so::model::config const&);
  static std::string model_type();
  so::model::config const& settings() const;
  std::vector<so::autograd::unit_layout>& units();
  std::vector<so::autograd::unit_layout> const& units() const;
  void apply_freeze();
};
using engine = so::train::engine<own>;
using device = engine::device_type;

int main() {}
