// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/nn/attention.hpp>
#include <superoffload/nn/gated_mlp.hpp>
#include <superoffload/nn/head_norm.hpp>
#include <superoffload/nn/linear.hpp>
#include <superoffload/nn/rms_norm.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::model {

/// Lays out a block's parameters in a unit of its own, in the order in which its forward uses them. Their
/// names are those of the checkpoint, without the prefix "model.layers.N." and the suffix ".weight".
class layer_layout {
public:
  using parts = std::vector<std::pair<std::string, std::int64_t>>;  ///< {name, rows} of each tensor

  /// For layer `layer`, from 0. Configuration and unit must outlive this.
  layer_layout(config const& c, autograd::unit_layout& unit, std::int64_t layer)
      : config_{&c}, unit_{&unit}, layer_{layer} {}

  /// A norm of the hidden state.
  nn::rms_norm norm(char const* name);
  /// A norm of the heads of queries and keys.
  nn::head_norm head_norm(char const* queries, char const* keys);
  /// One linear layer for several tensors below each other: {name, outputs}; each with a bias, if `bias`.
  nn::linear linear(parts const& outputs, std::int64_t inputs, bool bias = false);
  /// Queries, keys and values, one tensor each.
  nn::linear qkv(bool bias = false);
  /// Gates and ups of a dense layer, one tensor each.
  nn::linear gate_up(bool bias = false);
  /// A gated MLP of two layers, as gate_up() lays out the first one.
  nn::gated_mlp mlp(nn::linear const& gate_up, nn::linear const& down);
  /// The MLP of a dense layer, one tensor for each of gates, ups and downs.
  nn::gated_mlp mlp(bool bias = false);
  /// The heads of the layer's attention, with its window.
  [[nodiscard]] nn::attention_heads heads() const;

  /// The unit, for other kinds of parameters.
  [[nodiscard]] autograd::unit_layout& unit() const noexcept { return *unit_; }
  [[nodiscard]] std::int64_t layer() const noexcept { return layer_; }  ///< from 0
  [[nodiscard]] bool has_mlp() const noexcept { return has_mlp_; }      ///< was mlp() called?
  /// The name in the checkpoint: "model.layers.N." before it, `ending` behind it.
  [[nodiscard]] std::string full(std::string const& name, char const* ending = "") const;
  /// The same for the names of several tensors.
  [[nodiscard]] parts full(parts const& names, char const* ending) const;

private:
  config const* config_;
  autograd::unit_layout* unit_;
  std::int64_t layer_;
  bool has_mlp_ = false;
};

}  // namespace superoffload::model

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/model/impl/layer_layout_inl.hpp>
#endif
