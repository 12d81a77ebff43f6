// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/activation_checkpointing.hpp>
#include <superoffload/autograd/tape.hpp>
#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/model/architecture.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/model/view.hpp>
#include <superoffload/nn/batch.hpp>
#include <superoffload/train/engine/batch_shape.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace superoffload::train {

/// A model on a device in an element type, for code that needs neither type: what is known of its steps
/// before any memory is taken. Refers to the model and the device, which outlive it.
struct dry_model {
  std::vector<autograd::unit_layout> const* units = nullptr;  ///< of the model, by id
  model::config const* config = nullptr;                      ///< of the model
  std::size_t element_bytes = 0, wide_bytes = 0;              ///< of a T, and of a wide<T>
  double flops_per_byte = 0.0;                                ///< of the device, as D::flops_per_byte
  std::size_t gemm_workspace_bytes = 0;                       ///< of the device
  /// As model::view has them.
  std::function<double(std::int64_t tokens, model::visible_pairs const& visible)> forward_flops{};
  std::function<std::size_t(std::int64_t positions)> table_bytes{};  ///< as model::view has it
  /// Runs the forward and backward of a micro-batch without memory. \returns the peak bytes of activations if
  /// `kept` decides what is kept. Lists the functions inside blocks in `activations`, unless that is null.
  std::function<std::size_t(batch_shape const& shape, autograd::activation_checkpointing const& kept,
                            std::vector<autograd::activation>* activations)>
      dry_pass{};

  /// What a dry pass lists if everything is kept.
  [[nodiscard]] std::vector<autograd::activation> activations(batch_shape const& shape) const {
    std::vector<autograd::activation> all;
    dry_pass(shape, {}, &all);
    return all;
  }
  /// The peak of a dry pass.
  [[nodiscard]] std::size_t peak(batch_shape const& shape,
                                 autograd::activation_checkpointing const& kept) const {
    return dry_pass(shape, kept, nullptr);
  }
};

/// The model of a view on `device`.
template <element T, device_policy D>
dry_model dry_model_of(D const& device, model::as_view<D, T> const& model) {
  return {.units = &model.units(),
          .config = &model.settings(),
          .element_bytes = sizeof(T),
          .wide_bytes = sizeof(wide<T>),
          .flops_per_byte = D::flops_per_byte,
          .gemm_workspace_bytes = D::gemm_workspace_bytes,
          .forward_flops =
              [model](std::int64_t tokens, model::visible_pairs const& visible) {
                return model.forward_flops(tokens, visible);
              },
          .table_bytes = [model](std::int64_t positions) { return model.table_bytes(positions); },
          .dry_pass =
              [&device, model](batch_shape const& shape, autograd::activation_checkpointing const& kept,
                               std::vector<autograd::activation>* activations) {
                autograd::tape<D, T> dry{device, static_cast<int>(model.units().size())};
                dry.retain(&kept);
                dry.list_activations(activations);
                nn::batch largest;
                largest.rows = shape.rows;
                largest.documents = 1;
                largest.longest = static_cast<std::int32_t>(shape.positions);
                largest.sequence_ranks = shape.sequence_ranks;
                auto const no_tables = model.no_tables();
                dry.reset();
                model.loss(dry, largest, no_tables);
                dry.backward();
                return dry.peak_bytes();
              }};
}

}  // namespace superoffload::train
