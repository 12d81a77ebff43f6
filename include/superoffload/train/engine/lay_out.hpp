// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/model/architecture.hpp>
#include <superoffload/model/config.hpp>

#include <functional>

namespace superoffload::train {

/// Selects tensors of a model; empty: all.
using tensor_choice = std::function<bool(autograd::tensor_entry const&)>;

/// The model of a configuration, with the tensors that are trained and those of them that decay.
/// \throws error(bad_input) for a configuration of another architecture.
template <model::architecture Architecture>
Architecture lay_out(model::config const& config, tensor_choice const& trainable = {},
                     tensor_choice const& decays = {}) {
  expect(config.model_type == Architecture::model_type(), exit_code::bad_input, "this program trains '",
         Architecture::model_type(), "', but the configuration is of type '", printable(config.model_type),
         "'");
  Architecture model{config};
  for (auto& unit : model.units()) {
    for (auto& tensor : unit.tensors()) {
      tensor.trainable = !trainable || trainable(tensor);
      tensor.decays = !decays || decays(tensor);
    }
  }
  model.apply_freeze();
  return model;
}

}  // namespace superoffload::train
