// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/model/view.hpp>
#include <superoffload/nn/batch.hpp>
#include <superoffload/train/engine/batch_shape.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace superoffload::train {

/// Runs the forward and backward of a micro-batch without memory. \returns the peak bytes of activations if
/// `kept` decides what is kept. Lists the functions inside blocks in `activations`, unless that is null.
template <element T, device_policy D>
std::size_t dry_pass(D const& device, model::as_view<D, T> const& model, batch_shape const& shape,
                     autograd::activation_checkpointing const& kept,
                     std::vector<autograd::activation>* activations = nullptr) {
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
}

}  // namespace superoffload::train
