// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/json.hpp>
#include <superoffload/model/config.hpp>

#include <cmath>
#include <numbers>

namespace superoffload::model {
namespace {

using io::json_field;

constexpr std::int64_t widest = std::int64_t{1} << 24;  // of any extent but the positions
constexpr std::int64_t most_parameters = std::int64_t{1} << 42;

std::int64_t extent(json_field const& document, char const* key, std::int64_t most = widest) {
  return document[key].integer(1, most);
}

void refuse_unless_false(json_field const& document, char const* key) {
  if (document.has(key)) {
    expect(!document[key].boolean(), exit_code::bad_input, document[key].where(),
           ": true is not supported for this architecture, expected false");
  }
}

void refuse_unless_zero(json_field const& document, char const* key) {
  if (document.has(key)) {
    expect(document[key].number(0.0, 1.0) == 0.0, exit_code::bad_input, document[key].where(),
           ": dropout is not supported for this architecture, expected 0");
  }
}

rope_scaling read_scaling(json_field const& rope, std::int64_t max_positions) {
  rope_scaling scaling;
  char const* const key = rope.has("rope_type") ? "rope_type" : "type";
  if (!rope.has(key)) {
    return scaling;
  }
  auto const rule = rope[key].text();
  if (rule == "default") {
    return scaling;
  }
  expect(rule == "llama3", exit_code::bad_input, rope[key].where(), ": rope scaling '", printable(rule, 40),
         "' is not supported, expected 'llama3' or 'default'");
  scaling.kind = rope_scaling::rule::llama3;
  scaling.factor = rope["factor"].number(1.0, 1e6);
  scaling.low_frequency_factor = rope["low_freq_factor"].number(1e-3, 1e6);
  scaling.high_frequency_factor = rope["high_freq_factor"].number(1e-3, 1e6);
  scaling.original_positions = rope["original_max_position_embeddings"].integer(1, max_positions);
  expect(scaling.low_frequency_factor < scaling.high_frequency_factor, exit_code::bad_input,
         rope["high_freq_factor"].where(), ": ", scaling.high_frequency_factor,
         " must be larger than low_freq_factor ", scaling.low_frequency_factor);
  return scaling;
}

/// transformers 5 gathers theta and the scaling in rope_parameters; before, they stood apart.
void read_rope(json_field const& document, config& c) {
  if (document.has("rope_parameters")) {
    auto const rope = document["rope_parameters"];
    rope.require_object();
    if (rope.has("rope_theta")) {
      c.rope_theta = rope["rope_theta"].number(1.0, 1e12);
    }
    c.scaling = read_scaling(rope, c.max_positions);
    return;
  }
  if (document.has("rope_theta")) {
    c.rope_theta = document["rope_theta"].number(1.0, 1e12);
  }
  if (document.has("rope_scaling")) {
    auto const rope = document["rope_scaling"];
    rope.require_object();
    c.scaling = read_scaling(rope, c.max_positions);
  }
}

void check_sizes(json_field const& document, config const& c) {
  expect(c.heads % c.kv_heads == 0, exit_code::bad_input, document["num_attention_heads"].where(), ": ",
         c.heads, " heads must be a multiple of num_key_value_heads ", c.kv_heads);
  expect(c.head_dim % 2 == 0, exit_code::bad_input, document.where(), ": field 'head_dim' is ", c.head_dim,
         ", expected an even number");
  // Every factor is at most 2^24 and layers at most 2^12, so that no product of two leaves 64 bits.
  double const block =
      static_cast<double>(c.hidden) * static_cast<double>((2 * c.heads + 2 * c.kv_heads) * c.head_dim) +
      3.0 * static_cast<double>(c.hidden) * static_cast<double>(c.intermediate);
  double const parameters = static_cast<double>(c.layers) * block +
                            2.0 * static_cast<double>(c.vocabulary) * static_cast<double>(c.hidden);
  expect(parameters < static_cast<double>(most_parameters), exit_code::bad_input, document.where(),
         ": the sizes make ", parameters, " parameters, expected less than ", most_parameters);
}

}  // namespace

config read_config(std::filesystem::path const& directory) {
  auto const path = directory / "config.json";
  auto const text = io::read_json(path, {.bytes = std::size_t{1} << 20, .depth = 32});
  json_field const document{text, path.string()};
  document.require_object();

  config c;
  c.model_type = document["model_type"].text();
  expect(c.model_type == "llama", exit_code::bad_input, document["model_type"].where(), ": '",
         printable(c.model_type, 40), "' is not supported, expected 'llama'");
  c.vocabulary = extent(document, "vocab_size");
  c.hidden = extent(document, "hidden_size");
  c.intermediate = extent(document, "intermediate_size");
  c.layers = extent(document, "num_hidden_layers", 4096);
  c.heads = extent(document, "num_attention_heads", 4096);
  c.kv_heads = document.has("num_key_value_heads") ? extent(document, "num_key_value_heads", 4096) : c.heads;
  if (document.has("head_dim")) {
    c.head_dim = extent(document, "head_dim", 1024);
  } else {
    expect(c.hidden % c.heads == 0, exit_code::bad_input, document["hidden_size"].where(), ": ", c.hidden,
           " must be a multiple of num_attention_heads ", c.heads, " when head_dim is not given");
    c.head_dim = c.hidden / c.heads;
  }
  c.max_positions = document.has("max_position_embeddings")
                        ? extent(document, "max_position_embeddings", std::int64_t{1} << 27)
                        : 2048;
  if (document.has("rms_norm_eps")) {
    c.rms_norm_epsilon = document["rms_norm_eps"].number(0.0, 1.0);
    expect(c.rms_norm_epsilon > 0.0, exit_code::bad_input, document["rms_norm_eps"].where(),
           ": expected a number above 0");
  }
  if (document.has("tie_word_embeddings")) {
    c.tied_head = document["tie_word_embeddings"].boolean();
  }
  if (document.has("hidden_act")) {
    auto const activation = document["hidden_act"].text();
    expect(activation == "silu", exit_code::bad_input, document["hidden_act"].where(), ": '",
           printable(activation, 40), "' is not supported, expected 'silu'");
  }
  refuse_unless_false(document, "attention_bias");
  refuse_unless_false(document, "mlp_bias");
  refuse_unless_zero(document, "attention_dropout");
  expect(!document.has("quantization_config"), exit_code::bad_input, path.string(),
         ": field 'quantization_config': quantised checkpoints are not supported for this architecture; "
         "use the float32, float16 or bfloat16 checkpoint");
  read_rope(document, c);
  check_sizes(document, c);
  return c;
}

std::vector<double> inverse_frequencies(config const& c) {
  std::vector<double> result(static_cast<std::size_t>(c.head_dim / 2));
  for (std::size_t j = 0; j < result.size(); ++j) {
    double frequency =
        std::pow(c.rope_theta, -2.0 * static_cast<double>(j) / static_cast<double>(c.head_dim));
    if (c.scaling.kind == rope_scaling::rule::llama3) {
      auto const& s = c.scaling;
      auto const original = static_cast<double>(s.original_positions);
      double const wavelength = 2.0 * std::numbers::pi / frequency;
      if (wavelength > original / s.low_frequency_factor) {
        frequency /= s.factor;
      } else if (wavelength >= original / s.high_frequency_factor) {
        double const kept = (original / wavelength - s.low_frequency_factor) /
                            (s.high_frequency_factor - s.low_frequency_factor);
        frequency = (1.0 - kept) * frequency / s.factor + kept * frequency;
      }
    }
    result[j] = frequency;
  }
  return result;
}

}  // namespace superoffload::model
