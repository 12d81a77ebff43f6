// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/model/config.hpp>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numbers>

namespace superoffload::model {
namespace detail {

using io::json_field;

inline constexpr std::int64_t widest = std::int64_t{1} << 24;  // of any extent but the positions
inline constexpr std::int64_t most_parameters = std::int64_t{1} << 42;

SUPEROFFLOAD_INLINE std::int64_t extent(json_field const& document, char const* key,
                                        std::int64_t most = widest) {
  return document[key].integer(1, most);
}

SUPEROFFLOAD_INLINE void refuse_unless_false(json_field const& document, char const* key) {
  if (document.has(key)) {
    expect(!document[key].boolean(), exit_code::bad_input, document[key].where(),
           ": true is not supported for this architecture, expected false");
  }
}

SUPEROFFLOAD_INLINE void refuse_unless_zero(json_field const& document, char const* key) {
  if (document.has(key)) {
    expect(document[key].number(0.0, 1.0) == 0.0, exit_code::bad_input, document[key].where(),
           ": dropout is not supported for this architecture, expected 0");
  }
}

SUPEROFFLOAD_INLINE void refuse_any(json_field const& document, std::initializer_list<char const*> keys) {
  for (auto const* const key : keys) {
    expect(!document.has(key), exit_code::bad_input, document.where(), ": field '", key,
           "' does not belong to model_type '", printable(document["model_type"].text(), 40), "'");
  }
}

SUPEROFFLOAD_INLINE bool flag(json_field const& document, char const* key, bool otherwise) {
  return document.has(key) ? document[key].boolean() : otherwise;
}

SUPEROFFLOAD_INLINE double rate(json_field const& document, char const* key, double otherwise) {
  return document.has(key) ? document[key].number(0.0, 0.999) : otherwise;
}

SUPEROFFLOAD_INLINE void read_llama3(json_field const& rope, rope_scaling& scaling) {
  scaling.kind = rope_scaling::rule::llama3;
  scaling.low_frequency_factor = rope["low_freq_factor"].number(1e-3, 1e6);
  scaling.high_frequency_factor = rope["high_freq_factor"].number(1e-3, 1e6);
  expect(scaling.low_frequency_factor < scaling.high_frequency_factor, exit_code::bad_input,
         rope["high_freq_factor"].where(), ": ", scaling.high_frequency_factor,
         " must be larger than low_freq_factor ", scaling.low_frequency_factor);
}

SUPEROFFLOAD_INLINE void read_yarn(json_field const& rope, rope_scaling& scaling) {
  scaling.kind = rope_scaling::rule::yarn;
  scaling.fast_turns = rope.has("beta_fast") ? rope["beta_fast"].number(1e-3, 1e6) : 32.0;
  scaling.slow_turns = rope.has("beta_slow") ? rope["beta_slow"].number(1e-3, 1e6) : 1.0;
  expect(scaling.slow_turns < scaling.fast_turns, exit_code::bad_input, rope.where(), ": beta_fast ",
         scaling.fast_turns, " must be larger than beta_slow ", scaling.slow_turns);
  scaling.whole_turns = flag(rope, "truncate", true);
  for (auto const* const key : {"mscale", "mscale_all_dim"}) {
    expect(!rope.has(key), exit_code::bad_input, rope.where(), ": field '", key,
           "' is not supported, expected yarn without it");
  }
  scaling.attention_factor = rope.has("attention_factor") ? rope["attention_factor"].number(1e-3, 1e3)
                                                          : 0.1 * std::log(scaling.factor) + 1.0;
}

SUPEROFFLOAD_INLINE rope_scaling read_scaling(json_field const& rope, std::int64_t max_positions) {
  rope_scaling scaling;
  char const* const key = rope.has("rope_type") ? "rope_type" : "type";
  if (!rope.has(key)) {
    return scaling;
  }
  auto const rule = rope[key].text();
  if (rule == "default") {
    return scaling;
  }
  expect(rule == "llama3" || rule == "yarn", exit_code::bad_input, rope[key].where(), ": rope scaling '",
         printable(rule, 40), "' is not supported, expected 'llama3', 'yarn' or 'default'");
  scaling.factor = rope["factor"].number(1.0, 1e6);
  if (rule == "yarn") {
    read_yarn(rope, scaling);
  } else {
    read_llama3(rope, scaling);
  }
  scaling.original_positions = rope["original_max_position_embeddings"].integer(1, max_positions);
  return scaling;
}

SUPEROFFLOAD_INLINE void refuse_partial_rotary(json_field const& where) {
  if (where.has("partial_rotary_factor")) {
    expect(where["partial_rotary_factor"].number(0.0, 1.0) == 1.0, exit_code::bad_input,
           where["partial_rotary_factor"].where(), ": ", where["partial_rotary_factor"].shown(),
           " is not supported, expected 1");
  }
}

/// transformers 5 puts theta and the scaling into rope_parameters; earlier versions have separate fields.
SUPEROFFLOAD_INLINE void read_rope(json_field const& document, config& c) {
  refuse_partial_rotary(document);
  if (document.has("rope_parameters")) {
    auto const rope = document["rope_parameters"];
    rope.require_object();
    refuse_partial_rotary(rope);
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

/// The layers whose attention sees only a window, if the configuration names them, else `usual`.
template <class Usual>
std::vector<std::int32_t> read_windows(json_field const& document, std::int64_t layers, bool may_slide,
                                       Usual&& usual) {
  std::vector<bool> slides(static_cast<std::size_t>(layers));
  if (document.has("layer_types")) {
    auto const types = document["layer_types"];
    types.require_array();
    expect(types.raw().size() == slides.size(), exit_code::bad_input, types.where(), ": ", types.raw().size(),
           " layers, expected num_hidden_layers ", layers);
    for (std::size_t i = 0; i < slides.size(); ++i) {
      auto const type = types[i].text();
      slides[i] = type == "sliding_attention";
      expect(slides[i] || type == "full_attention", exit_code::bad_input, types[i].where(), ": '",
             printable(type, 40), "' is not supported, expected 'full_attention' or 'sliding_attention'");
      expect(!slides[i] || may_slide, exit_code::bad_input, types[i].where(),
             ": sliding_attention, but use_sliding_window is not true");
    }
  } else {
    for (std::size_t i = 0; i < slides.size(); ++i) {
      slides[i] = may_slide && usual(static_cast<std::int64_t>(i));
    }
  }
  if (std::ranges::find(slides, true) == slides.end()) {
    return {};
  }
  auto const window = static_cast<std::int32_t>(document["sliding_window"].integer(1, std::int64_t{1} << 30));
  std::vector<std::int32_t> windows;
  for (bool const does : slides) { windows.push_back(does ? window : 0); }
  return windows;
}

// What is special of each family
// -----------------------------------------------------------------------------------------------------

SUPEROFFLOAD_INLINE void read_llama(json_field const& document, config&) {
  refuse_unless_false(document, "attention_bias");
  refuse_unless_false(document, "mlp_bias");
  refuse_unless_zero(document, "attention_dropout");
}

SUPEROFFLOAD_INLINE void read_phi3(json_field const& document, config& c) {
  for (auto const* const key : {"attention_dropout", "embd_pdrop", "resid_pdrop"}) {
    refuse_unless_zero(document, key);
  }
  if (document.has("sliding_window")) {
    c.windows = read_windows(document, c.layers, true, [](std::int64_t) { return true; });
  }
}

/// transformers ignores layer_types for Mistral: all layers have the window or none has.
SUPEROFFLOAD_INLINE void read_mistral(json_field const& document, config& c) {
  read_llama(document, c);
  refuse_any(document, {"layer_types"});
  auto const left_out = [&](char const* key) { return !document.raw().contains(key); };  // null is a value
  if (left_out("num_key_value_heads")) {
    c.kv_heads = 8;
  }
  if (left_out("sliding_window") || document.has("sliding_window")) {
    auto const window =
        left_out("sliding_window") ? 4096 : document["sliding_window"].integer(1, std::int64_t{1} << 30);
    c.windows.assign(static_cast<std::size_t>(c.layers), static_cast<std::int32_t>(window));
  }
}

/// For Qwen3 with experts, too.
SUPEROFFLOAD_INLINE void read_qwen3(json_field const& document, config& c) {
  refuse_unless_false(document, "attention_bias");
  refuse_unless_zero(document, "attention_dropout");
  bool const may_slide = flag(document, "use_sliding_window", false) && document.has("sliding_window");
  auto const first =
      document.has("max_window_layers") ? document["max_window_layers"].integer(0, widest) : 28;
  c.windows = read_windows(document, c.layers, may_slide, [&](std::int64_t layer) { return layer >= first; });
}

/// `key` names the field with the number of experts.
SUPEROFFLOAD_INLINE void read_experts(json_field const& document, char const* key, config& c) {
  constexpr std::int64_t most = 4096;
  c.experts = extent(document, key, most);
  c.experts_per_token = extent(document, "num_experts_per_tok", most);
  expect(c.experts_per_token <= c.experts, exit_code::bad_input, document["num_experts_per_tok"].where(),
         ": ", c.experts_per_token, ", but there are ", key, " ", c.experts);
  refuse_unless_false(document, "output_router_logits");
}

SUPEROFFLOAD_INLINE void read_qwen3_moe(json_field const& document, config& c) {
  read_qwen3(document, c);
  read_experts(document, "num_experts", c);
  c.intermediate = extent(document, "moe_intermediate_size");
  c.normalizes_experts = flag(document, "norm_topk_prob", false);
  expect(!document.has("decoder_sparse_step") || document["decoder_sparse_step"].integer(1, widest) == 1,
         exit_code::bad_input, document.where(),
         ": field 'decoder_sparse_step': layers without experts are not supported, expected 1");
  if (document.has("mlp_only_layers")) {
    document["mlp_only_layers"].require_array();
    expect(document["mlp_only_layers"].raw().empty(), exit_code::bad_input,
           document["mlp_only_layers"].where(), ": layers without experts are not supported, expected none");
  }
}

SUPEROFFLOAD_INLINE void read_seed_oss(json_field const& document, config& c) {
  c.qkv_bias = flag(document, "attention_bias", true);
  c.output_bias = flag(document, "attention_out_bias", false);
  refuse_unless_false(document, "mlp_bias");
  c.attention_dropout = rate(document, "attention_dropout", 0.1);
  c.residual_dropout = rate(document, "residual_dropout", 0.1);
}

SUPEROFFLOAD_INLINE void read_gpt_oss(json_field const& document, config& c) {
  c.qkv_bias = c.output_bias = c.has_sinks = true;
  expect(flag(document, "attention_bias", true), exit_code::bad_input, document.where(),
         ": field 'attention_bias': false is not supported for this architecture, expected true");
  refuse_unless_zero(document, "attention_dropout");
  read_experts(document, "num_local_experts", c);
  if (document.has("experts_per_token")) {
    expect(document["experts_per_token"].integer(1, widest) == c.experts_per_token, exit_code::bad_input,
           document["experts_per_token"].where(), ": ", document["experts_per_token"].shown(),
           ", but num_experts_per_tok is ", c.experts_per_token);
  }
  c.swiglu_limit = document.has("swiglu_limit") ? document["swiglu_limit"].number(1e-3, 1e6) : 7.0;
  c.windows = read_windows(document, c.layers, true, [](std::int64_t layer) { return layer % 2 == 0; });
  if (document.has("quantization_config")) {
    auto const method = document["quantization_config"]["quant_method"];
    expect(method.text() == "mxfp4", exit_code::bad_input, method.where(), ": '",
           printable(method.text(), 40), "' is not supported, expected 'mxfp4'");
    c.mxfp4_experts = true;
  }
}

inline constexpr family families[] = {
    {"llama", "LlamaForCausalLM", 0, 1e-6, -1, false, false, read_llama},
    {"mistral", "MistralForCausalLM", 0, 1e-6, -1, false, false, read_mistral},
    {"phi3", "Phi3ForCausalLM", 0, 1e-5, 32000, false, false, read_phi3},
    {"qwen3", "Qwen3ForCausalLM", 128, 1e-6, -1, false, false, read_qwen3},
    {"qwen3_moe", "Qwen3MoeForCausalLM", 0, 1e-6, -1, true, false, read_qwen3_moe},
    {"seed_oss", "SeedOssForCausalLM", 128, 1e-6, 1, false, false, read_seed_oss},
    {"gpt_oss", "GptOssForCausalLM", 64, 1e-5, -1, true, true, read_gpt_oss},
};

SUPEROFFLOAD_INLINE family const& family_of(json_field const& document, family const* own) {
  auto const type = document["model_type"].text();
  if (own != nullptr && type == own->model_type) {
    return *own;
  }
  std::string known = own != nullptr ? own->model_type : "";
  for (auto const& f : families) {
    if (type == f.model_type) {
      return f;
    }
    known += concat(known.empty() ? "" : ", ", f.model_type);
  }
  fail(exit_code::bad_input, document["model_type"].where(), ": '", printable(type, 40),
       "' is not supported, expected one of ", known);
}

/// Refuses a checkpoint of another class: it has another head.
SUPEROFFLOAD_INLINE void check_class(json_field const& document, family const& f) {
  if (!document.has("architectures")) {
    return;
  }
  auto const classes = document["architectures"];
  classes.require_array();
  for (std::size_t i = 0; i < classes.raw().size(); ++i) {
    expect(classes[i].text() == f.name, exit_code::bad_input, classes[i].where(), ": '",
           printable(classes[i].text(), 60), "', but model_type '", f.model_type, "' is '", f.name, "'");
  }
}

/// As in nn.Embedding, a negative index counts from the end.
SUPEROFFLOAD_INLINE void read_padding(json_field const& document, family const& f, config& c) {
  auto const& members = document.raw();
  auto const given = members.find("pad_token_id");
  if (given == members.end()) {
    c.padding_token = f.padding_token;
    expect(c.padding_token < c.vocabulary, exit_code::bad_input, document.where(),
           ": field 'pad_token_id' is missing, and ", c.padding_token,
           ", which transformers takes then, is not below vocab_size ", c.vocabulary);
  } else if (!given->is_null()) {
    auto const id = document["pad_token_id"].integer(-c.vocabulary, c.vocabulary - 1);
    c.padding_token = static_cast<std::int32_t>(id < 0 ? id + c.vocabulary : id);
  }
}

SUPEROFFLOAD_INLINE void check_sizes(json_field const& document, config const& c) {
  expect(c.heads % c.kv_heads == 0, exit_code::bad_input, document["num_attention_heads"].where(), ": ",
         c.heads, " heads must be a multiple of num_key_value_heads ", c.kv_heads);
  expect(c.head_dim % 2 == 0, exit_code::bad_input, document.where(), ": field 'head_dim' is ", c.head_dim,
         ", expected an even number");
  // Every factor is at most 2^24, and layers and experts at most 2^12, so that no product of two exceeds 64
  // bits.
  double const block =
      static_cast<double>(c.hidden) * static_cast<double>((2 * c.heads + 2 * c.kv_heads) * c.head_dim) +
      3.0 * static_cast<double>(c.hidden) * static_cast<double>(c.intermediate) *
          static_cast<double>(std::max<std::int64_t>(1, c.experts));
  double const parameters = static_cast<double>(c.layers) * block +
                            2.0 * static_cast<double>(c.vocabulary) * static_cast<double>(c.hidden);
  expect(parameters < static_cast<double>(most_parameters), exit_code::bad_input, document.where(),
         ": the sizes make ", parameters, " parameters, expected less than ", most_parameters);
}

SUPEROFFLOAD_INLINE io::json read_document(std::filesystem::path const& path) {
  return io::read_json(path, {.bytes = std::size_t{1} << 20, .depth = 32});
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::string model_type_of(io::model_directory const& directory) {
  auto const path = directory.file("config.json");
  auto const text = detail::read_document(path);
  detail::json_field const document{text, path.string()};
  document.require_object();
  return document["model_type"].text();
}

SUPEROFFLOAD_INLINE config read_config(io::model_directory const& directory, family const* own) {
  auto const path = directory.file("config.json");
  auto const text = detail::read_document(path);
  detail::json_field const document{text, path.string()};
  document.require_object();

  auto const& f = detail::family_of(document, own);
  detail::check_class(document, f);
  config c;
  c.model_type = f.model_type;
  c.vocabulary = detail::extent(document, "vocab_size");
  c.hidden = detail::extent(document, "hidden_size");
  c.intermediate = detail::extent(document, "intermediate_size");
  c.layers = detail::extent(document, "num_hidden_layers", 4096);
  c.heads = detail::extent(document, "num_attention_heads", 4096);
  c.kv_heads =
      document.has("num_key_value_heads") ? detail::extent(document, "num_key_value_heads", 4096) : c.heads;
  if (document.has("head_dim")) {
    c.head_dim = detail::extent(document, "head_dim", 1024);
  } else if (f.head_dim > 0) {
    c.head_dim = f.head_dim;
  } else {
    expect(c.hidden % c.heads == 0, exit_code::bad_input, document["hidden_size"].where(), ": ", c.hidden,
           " must be a multiple of num_attention_heads ", c.heads, " when head_dim is not given");
    c.head_dim = c.hidden / c.heads;
  }
  c.max_positions = document.has("max_position_embeddings")
                        ? detail::extent(document, "max_position_embeddings", std::int64_t{1} << 27)
                        : 2048;
  c.rms_norm_epsilon = f.rms_norm_epsilon;
  if (document.has("rms_norm_eps")) {
    c.rms_norm_epsilon = document["rms_norm_eps"].number(0.0, 1.0);
    expect(c.rms_norm_epsilon > 0.0, exit_code::bad_input, document["rms_norm_eps"].where(),
           ": expected a number above 0");
  }
  c.tied_head = detail::flag(document, "tie_word_embeddings", false);
  if (document.has("hidden_act")) {
    auto const activation = document["hidden_act"].text();
    expect(activation == "silu", exit_code::bad_input, document["hidden_act"].where(), ": '",
           printable(activation, 40), "' is not supported, expected 'silu'");
  }
  if (!f.has_experts) {
    detail::refuse_any(document, {"num_experts", "num_local_experts", "num_experts_per_tok"});
  }
  expect(f.may_be_quantised || !document.has("quantization_config"), exit_code::bad_input, path.string(),
         ": field 'quantization_config': quantised checkpoints are not supported for this architecture; "
         "use the float32, float16 or bfloat16 checkpoint");
  detail::read_padding(document, f, c);
  detail::read_rope(document, c);
  if (f.read != nullptr) {
    f.read(document, c);
  }
  detail::check_sizes(document, c);
  return c;
}

namespace detail {

SUPEROFFLOAD_INLINE double llama3_frequency(rope_scaling const& s, double frequency) {
  auto const original = static_cast<double>(s.original_positions);
  double const wavelength = 2.0 * std::numbers::pi / frequency;
  if (wavelength > original / s.low_frequency_factor) {
    return frequency / s.factor;
  }
  if (wavelength >= original / s.high_frequency_factor) {
    double const kept =
        (original / wavelength - s.low_frequency_factor) / (s.high_frequency_factor - s.low_frequency_factor);
    return (1.0 - kept) * frequency / s.factor + kept * frequency;
  }
  return frequency;
}

/// The indices of frequencies between which yarn blends.
struct yarn_ramp {
  double low, high;

  explicit yarn_ramp(config const& c) {
    auto const& s = c.scaling;
    auto const size = static_cast<double>(c.head_dim);
    auto const index_with = [&](double turns) {
      return size * std::log(static_cast<double>(s.original_positions) / (turns * 2.0 * std::numbers::pi)) /
             (2.0 * std::log(c.rope_theta));
    };
    low = index_with(s.fast_turns);
    high = index_with(s.slow_turns);
    if (s.whole_turns) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, size - 1.0);
    if (low == high) {
      high += 0.001;  // as transformers does
    }
  }
  [[nodiscard]] double frequency(rope_scaling const& s, double j, double frequency) const {
    double const stretched = std::clamp((j - low) / (high - low), 0.0, 1.0);
    return stretched * frequency / s.factor + (1.0 - stretched) * frequency;
  }
};

}  // namespace detail

SUPEROFFLOAD_INLINE std::vector<double> inverse_frequencies(config const& c) {
  std::vector<double> result(static_cast<std::size_t>(c.head_dim / 2));
  for (std::size_t j = 0; j < result.size(); ++j) {
    auto const index = static_cast<double>(j);
    double const frequency = std::pow(c.rope_theta, -2.0 * index / static_cast<double>(c.head_dim));
    switch (c.scaling.kind) {
      case rope_scaling::rule::none:
        result[j] = frequency;
        break;
      case rope_scaling::rule::llama3:
        result[j] = detail::llama3_frequency(c.scaling, frequency);
        break;
      case rope_scaling::rule::yarn:
        result[j] = detail::yarn_ramp{c}.frequency(c.scaling, index, frequency);
        break;
    }
  }
  return result;
}

}  // namespace superoffload::model
