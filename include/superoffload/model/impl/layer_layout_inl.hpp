// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/model/layer_layout.hpp>

#include <cstdint>
#include <string>

namespace superoffload::model {

SUPEROFFLOAD_INLINE nn::rms_norm layer_layout::norm(char const* name) {
  return {unit_->add_vector(full(name, ".weight"), config_->hidden), config_->rms_norm_epsilon};
}

SUPEROFFLOAD_INLINE nn::head_norm layer_layout::head_norm(char const* queries, char const* keys) {
  auto const size = config_->head_dim;
  return {unit_->add_vector(full({{queries, size}, {keys, size}}, ".weight")), config_->rms_norm_epsilon};
}

SUPEROFFLOAD_INLINE nn::linear layer_layout::linear(parts const& outputs, std::int64_t inputs, bool bias) {
  nn::linear made{.weight = unit_->add_matrix(full(outputs, ".weight"), inputs), .gemms = config_->gemms};
  if (bias) {
    made.bias = unit_->add_vector(full(outputs, ".bias"));
  }
  return made;
}

SUPEROFFLOAD_INLINE nn::linear layer_layout::qkv(bool bias) {
  auto const& c = *config_;
  return linear({{"self_attn.q_proj", c.query_columns()},
                 {"self_attn.k_proj", c.key_columns()},
                 {"self_attn.v_proj", c.key_columns()}},
                c.hidden, bias);
}

SUPEROFFLOAD_INLINE nn::linear layer_layout::gate_up(bool bias) {
  auto const& c = *config_;
  return linear({{"mlp.gate_proj", c.intermediate}, {"mlp.up_proj", c.intermediate}}, c.hidden, bias);
}

SUPEROFFLOAD_INLINE nn::gated_mlp layer_layout::mlp(nn::linear const& gate_up, nn::linear const& down) {
  has_mlp_ = true;
  return {gate_up, down, config_->tiled_mlp};
}

SUPEROFFLOAD_INLINE nn::gated_mlp layer_layout::mlp(bool bias) {
  auto const gates = gate_up(bias);
  return mlp(gates, linear({{"mlp.down_proj", config_->hidden}}, config_->intermediate, bias));
}

SUPEROFFLOAD_INLINE nn::attention_heads layer_layout::heads() const {
  auto const& c = *config_;
  return {static_cast<std::int32_t>(c.heads), static_cast<std::int32_t>(c.kv_heads),
          static_cast<std::int32_t>(c.head_dim), c.window_of(layer_)};
}

SUPEROFFLOAD_INLINE std::string layer_layout::full(std::string const& name, char const* ending) const {
  return "model.layers." + std::to_string(layer_) + "." + name + ending;
}

SUPEROFFLOAD_INLINE layer_layout::parts layer_layout::full(parts const& names, char const* ending) const {
  parts all;
  for (auto const& [name, size] : names) { all.emplace_back(full(name, ending), size); }
  return all;
}

}  // namespace superoffload::model
