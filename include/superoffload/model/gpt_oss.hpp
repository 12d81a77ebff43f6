// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/model/decoder.hpp>
#include <superoffload/nn/experts.hpp>

#include <string>
#include <tuple>

namespace superoffload::model {

/// One more score of each head that carries no value.
struct attention_sinks {
  autograd::parameter weight;  ///< [1, heads]

  /// Calls f with every parameter.
  template <class F>
  void each_parameter(F&& f) {
    f(weight);
  }
  [[nodiscard]] static double flops_per_row() { return 0.0; }  ///< negligible beside GEMMs
};

/// One layer of gpt-oss (arXiv 2508.10925): attention with sinks and biases, in a window on some layers, and
/// a mixture of experts with a clamped gate. The experts' matrices are [in, out]; gates and ups alternate.
struct gpt_oss_block {
  nn::rms_norm attention_norm;  ///< before attention
  nn::linear qkv;               ///< [(heads + 2 kv_heads) * head_dim, hidden]
  attention_sinks sinks;        ///< of attention
  nn::linear o;                 ///< [hidden, heads * head_dim]
  nn::rms_norm mlp_norm;        ///< before the experts
  nn::experts experts;          ///< with biases, also of the router
  nn::attention_heads heads;    ///< with the window of this layer

  static std::string model_type() { return "gpt_oss"; }  ///< the model_type in config.json
  /// References to the layers with parameters, for decoder.
  auto parts() { return std::tie(attention_norm, qkv, sinks, o, mlp_norm, experts); }

  /// The layer's parameters in `layer`'s unit, for a checked configuration.
  static gpt_oss_block lay_out(config const& c, layer_layout& layer) {
    auto const tensor = [&](char const* name, std::vector<std::int64_t> const& shape) {
      return layer.unit().add_tensor(layer.full(name), shape);
    };
    return {
        .attention_norm = layer.norm("input_layernorm"),
        .qkv = layer.qkv(c.qkv_bias),
        .sinks = {tensor("self_attn.sinks", {c.heads})},
        .o = layer.linear({{"self_attn.o_proj", c.hidden}}, c.query_columns(), c.output_bias),
        .mlp_norm = layer.norm("post_attention_layernorm"),
        .experts = {.router = layer.linear({{"mlp.router", c.experts}}, c.hidden, true),
                    .gate_up = tensor("mlp.experts.gate_up_proj", {c.experts, c.hidden, 2 * c.intermediate}),
                    .down = tensor("mlp.experts.down_proj", {c.experts, c.intermediate, c.hidden}),
                    .gate_up_bias = tensor("mlp.experts.gate_up_proj_bias", {c.experts, 2 * c.intermediate}),
                    .down_bias = tensor("mlp.experts.down_proj_bias", {c.experts, c.hidden}),
                    .count = c.experts,
                    .intermediate = c.intermediate,
                    .each = static_cast<std::int32_t>(c.experts_per_token),
                    .gate = kernel::expert_gate::clamped,
                    .gate_limit = c.swiglu_limit,
                    .layout = nn::expert_layout::in_out},
        .heads = layer.heads()};
  }

  /// [rows, hidden] -> [rows, hidden]. Batch and table must outlive the backward. `load`: for the
  /// load-balancing loss.
  template <device_policy D, element T>
  autograd::variable<D, T> operator()(autograd::variable<D, T> x, nn::batch const* b,
                                      nn::rotary_table<D, wide<T>> const* table, nn::layer_load load) const {
    auto const turned = nn::rotary(qkv(attention_norm(x)), *b, *table, heads);
    x = o.onto(x, nn::attention(turned, *b, heads, sinks.weight));
    return experts.onto(x, mlp_norm(x), load);
  }
};

/// gpt-oss, from weights in bfloat16 or MXFP4.
using gpt_oss = decoder<gpt_oss_block>;

static_assert(architecture<gpt_oss>);

}  // namespace superoffload::model
