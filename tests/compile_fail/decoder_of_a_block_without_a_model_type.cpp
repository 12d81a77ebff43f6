// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// error: a decoder's block names the model_type of its checkpoints
#include <superoffload/model/decoder.hpp>
#include <superoffload/nn/swiglu.hpp>

#include <tuple>

namespace so = superoffload;

struct block {
  so::nn::rms_norm norm;
  so::nn::attention_heads heads;

  auto parts() { return std::tie(norm); }
  static block lay_out(so::model::config const&, so::model::layer_layout& layer) {
    return {.norm = layer.norm("input_layernorm"), .heads = layer.heads()};
  }
};

static_assert(so::model::architecture<so::model::decoder<block>>);

int main() {}
