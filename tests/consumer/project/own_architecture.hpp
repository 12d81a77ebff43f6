// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A user's own architecture, with a model_type that the library does not know.
#include <superoffload/core/error.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/model/decoder.hpp>
#include <superoffload/nn/swiglu.hpp>

#include <string>
#include <tuple>

/// One layer whose attention and MLP read the same norm.
struct parallel_block {
  superoffload::nn::rms_norm norm;
  superoffload::nn::linear qkv, o, gate_up, down;
  superoffload::nn::attention_heads heads;

  static void read(superoffload::io::json_field const& document, superoffload::model::config&) {
    superoffload::expect(document["parallel_residual"].boolean(), superoffload::exit_code::bad_input,
                         document["parallel_residual"].where(), ": expected true");
  }
  static constexpr superoffload::model::family config_family{
      .model_type = "parallel", .name = "ParallelForCausalLM", .read = read};

  static std::string model_type() { return config_family.model_type; }
  auto parts() { return std::tie(norm, qkv, o, gate_up, down); }

  static parallel_block lay_out(superoffload::model::config const& c,
                                superoffload::model::layer_layout& layer) {
    return {.norm = layer.norm("input_layernorm"),
            .qkv = layer.qkv(),
            .o = layer.linear({{"self_attn.o_proj", c.hidden}}, c.query_columns()),
            .gate_up = layer.gate_up(),
            .down = layer.linear({{"mlp.down_proj", c.hidden}}, c.intermediate),
            .heads = layer.heads()};
  }

  template <superoffload::device_policy D, superoffload::element T>
  superoffload::autograd::variable<D, T> operator()(
      superoffload::autograd::variable<D, T> x, superoffload::nn::batch const* b,
      superoffload::nn::rotary_table<D, superoffload::wide<T>> const* table) const {
    namespace nn = superoffload::nn;
    auto const normed = norm(x);
    x = o.onto(x, nn::attention(nn::rotary(qkv(normed), *b, *table, heads), *b, heads));
    return down.onto(x, nn::swiglu(gate_up(normed)));
  }
};

using parallel = superoffload::model::decoder<parallel_block>;
static_assert(superoffload::model::architecture<parallel>);
