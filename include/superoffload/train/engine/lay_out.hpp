// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/gemm_format.hpp>
#include <superoffload/model/architecture.hpp>
#include <superoffload/model/config.hpp>

#include <concepts>
#include <functional>
#include <string>

namespace superoffload::train {

/// Selects tensors of a model; empty: all.
using tensor_choice = std::function<bool(autograd::tensor_entry const&)>;

/// The element type of a model's weights, as --dtype has it, or "fp8" where its linear layers multiply in 8
/// bits.
template <element T>
std::string dtype_name(model::config const& config) {
  bool const is_bfloat16 = std::same_as<T, bfloat16>;
  return config.gemms == gemm_format::float8 ? "fp8" : is_bfloat16 ? "bf16" : "float32";
}

/// \throws error(bad_input) if the device, or elements of type T, have no GEMMs in the format of `config`.
template <element T, device_policy D>
void expect_gemms(D const& device, model::config const& config) {
  if (config.gemms == gemm_format::element) {
    return;
  }
  expect(std::same_as<T, bfloat16>, exit_code::bad_input,
         "FP8 GEMMs are for models in bfloat16: expected precision::bf16");
  expect(multiplies_float8(device), exit_code::bad_input, "--dtype fp8: ", device.description(),
         " has no FP8 GEMMs; expected an NVIDIA GPU of compute capability 8.9 or more (Ada, Hopper, "
         "Blackwell), or --dtype bf16");
}

/// \throws error(bad_input) if `ranks` ranks are no groups of `number`, the value of `flag`.
void expect_groups(char const* flag, int number, int ranks);

/// \throws error(bad_input) if `weight_ranks` of `ranks` ranks cannot keep a copy of the weights; 0 is for
/// all.
void expect_copies(int weight_ranks, int ranks);

/// \throws error(bad_input) if `sequence_ranks` of `ranks` ranks cannot share the rows of a micro-batch.
void expect_shareable(int sequence_ranks, int ranks, model::config const& config);

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

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/engine/impl/lay_out_inl.hpp>
#endif
