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
#include <optional>
#include <string_view>

namespace superoffload::model {
namespace detail {

using io::json_field;

inline constexpr std::int64_t widest = std::int64_t{1} << 24;  // of any extent but the positions
inline constexpr std::int64_t most_positions = std::int64_t{1} << 27;
inline constexpr std::int64_t most_parameters = std::int64_t{1} << 42;

/// `otherwise` where the field is missing; 0: it may not be missing.
SUPEROFFLOAD_INLINE std::int64_t extent(json_field const& document, char const* key, std::int64_t otherwise,
                                        std::int64_t most = widest) {
  bool const given = document.raw().contains(key) || otherwise == 0;
  return given ? document[key].integer(1, most) : otherwise;
}

SUPEROFFLOAD_INLINE std::string model_type_in(json_field const& document) {
  return printable(document["model_type"].text(), 40);
}

/// For switches that transformers does not read for this model_type: whoever sets one expects something else.
SUPEROFFLOAD_INLINE void refuse_ignored(json_field const& document, std::initializer_list<char const*> keys) {
  for (auto const* const key : keys) {
    expect(!document.has(key) || !document[key].boolean(), exit_code::bad_input, document.where(),
           ": field '", key, "' is true, but transformers ignores it for model_type '",
           model_type_in(document), "'; set it to false to train the same model");
  }
}

SUPEROFFLOAD_INLINE void refuse_unless_zero(json_field const& document, char const* key) {
  if (document.has(key)) {
    expect(document[key].number(0.0, 1.0) == 0.0, exit_code::bad_input, document[key].where(),
           ": dropout is not supported for this architecture, expected 0; set it to 0 to train without it");
  }
}

SUPEROFFLOAD_INLINE void refuse_any(json_field const& document, std::initializer_list<char const*> keys) {
  for (auto const* const key : keys) {
    expect(!document.has(key), exit_code::bad_input, document.where(), ": field '", key,
           "' does not belong to model_type '", model_type_in(document), "'");
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

/// Of yarn. `mscale` and `mscale_all_dim` count together only.
SUPEROFFLOAD_INLINE double read_attention_factor(json_field const& rope, double factor) {
  if (rope.has("attention_factor")) {
    return rope["attention_factor"].number(1e-3, 1e3);
  }
  auto const scale = [&](char const* key) { return rope.has(key) ? rope[key].number(0.0, 1e3) : 0.0; };
  auto const magnitude = [&](double by) { return 0.1 * by * std::log(factor) + 1.0; };
  auto const numerator = scale("mscale"), denominator = scale("mscale_all_dim");
  return numerator > 0.0 && denominator > 0.0 ? magnitude(numerator) / magnitude(denominator)
                                              : magnitude(1.0);
}

SUPEROFFLOAD_INLINE void read_yarn(json_field const& rope, config const& c, rope_scaling& scaling) {
  scaling.kind = rope_scaling::rule::yarn;
  expect(c.rope_theta > 1.0, exit_code::bad_input, rope.where(), ": yarn needs a rope_theta above 1, found ",
         c.rope_theta);
  scaling.fast_turns = rope.has("beta_fast") ? rope["beta_fast"].number(1e-3, 1e6) : 32.0;
  scaling.slow_turns = rope.has("beta_slow") ? rope["beta_slow"].number(1e-3, 1e6) : 1.0;
  expect(scaling.slow_turns < scaling.fast_turns, exit_code::bad_input, rope.where(), ": beta_fast ",
         scaling.fast_turns, " must be larger than beta_slow ", scaling.slow_turns);
  scaling.whole_turns = flag(rope, "truncate", !rope.raw().contains("truncate"));  // null is false
  scaling.attention_factor = read_attention_factor(rope, scaling.factor);
}

/// A field beside the rope settings wins over one inside.
SUPEROFFLOAD_INLINE std::int64_t original_positions(json_field const& document, json_field const& rope,
                                                    std::int64_t otherwise) {
  constexpr char const* key = "original_max_position_embeddings";
  auto const& holder = document.has(key) ? document : rope;
  return holder.has(key) ? extent(holder, key, otherwise, most_positions) : otherwise;
}

/// A factor for each frequency.
SUPEROFFLOAD_INLINE std::vector<double> read_factors(json_field const& rope, char const* key,
                                                     std::int64_t count) {
  auto const list = rope[key];
  list.require_array();
  expect(list.raw().size() == static_cast<std::size_t>(count), exit_code::bad_input, list.where(), ": ",
         list.raw().size(), " factors, expected ", count, ", one for two elements that are rotated");
  std::vector<double> factors;
  for (std::size_t i = 0; i < list.raw().size(); ++i) { factors.push_back(list[i].number(1e-6, 1e6)); }
  return factors;
}

/// `original`: the positions for which the short factors are.
SUPEROFFLOAD_INLINE void read_longrope(json_field const& rope, std::int64_t original, config& c) {
  auto& scaling = c.scaling;
  scaling.kind = rope_scaling::rule::longrope;
  scaling.original_positions = original;
  scaling.short_factors = read_factors(rope, "short_factor", c.rotated() / 2);
  scaling.long_factors = read_factors(rope, "long_factor", c.rotated() / 2);
  scaling.factor = rope.has("factor") ? rope["factor"].number(1e-3, 1e6)
                                      : static_cast<double>(c.max_positions) / static_cast<double>(original);
  if (rope.has("attention_factor")) {
    scaling.attention_factor = rope["attention_factor"].number(1e-3, 1e3);
  } else if (scaling.factor > 1.0) {
    expect(original > 1, exit_code::bad_input, rope.where(),
           ": longrope needs an original_max_position_embeddings above 1, found ", original);
    scaling.attention_factor =
        std::sqrt(1.0 + std::log(scaling.factor) / std::log(static_cast<double>(original)));
  }
}

/// The field that names the type of a scaling, by its new or its old name.
SUPEROFFLOAD_INLINE char const* rope_type_key(json_field const& rope) {
  return rope.has("rope_type") ? "rope_type" : "type";
}

SUPEROFFLOAD_INLINE std::string rope_type_in(json_field const& rope) {
  char const* const key = rope_type_key(rope);
  return rope.has(key) ? rope[key].text() : "default";
}

SUPEROFFLOAD_INLINE void read_scaling(json_field const& document, json_field const& rope, config& c) {
  char const* const key = rope_type_key(rope);
  auto const rule = rope_type_in(rope);
  if (rule == "default") {
    return;
  }
  auto const known = {"llama3", "yarn", "linear", "dynamic", "longrope"};
  expect(std::ranges::find(known, rule) != known.end(), exit_code::bad_input, rope[key].where(),
         ": rope scaling '", printable(rule, 40),
         "' is not supported, expected 'llama3', 'yarn', 'linear', 'dynamic', 'longrope' or 'default'");
  auto& scaling = c.scaling;
  scaling.original_positions = original_positions(document, rope, c.max_positions);
  if (rule == "longrope") {
    read_longrope(rope, scaling.original_positions, c);
    return;
  }
  bool const implied = rule == "yarn" && rope.raw().contains("factor") && !rope.has("factor");  // null
  scaling.factor =
      implied ? static_cast<double>(c.max_positions) / static_cast<double>(scaling.original_positions)
              : rope["factor"].number(1.0, 1e6);
  expect(scaling.factor >= 1.0, exit_code::bad_input, rope["factor"].where(),
         ": null stands for max_position_embeddings / original_max_position_embeddings, which is ",
         scaling.factor, ", expected at least 1");
  if (rule == "yarn") {
    read_yarn(rope, c, scaling);
  } else if (rule == "llama3") {
    read_llama3(rope, scaling);
  } else if (rule == "dynamic") {
    scaling.kind = rope_scaling::rule::dynamic;
    expect(c.rotated() > 2, exit_code::bad_input, rope[key].where(),
           ": dynamic divides by the rotated elements of a head minus 2, but these are ", c.rotated(),
           "; expected more");
  } else {
    scaling.kind = rope_scaling::rule::linear;
  }
}

SUPEROFFLOAD_INLINE void refuse_partial_rotary(json_field const& document, json_field const& where) {
  if (where.has("partial_rotary_factor")) {
    expect(where["partial_rotary_factor"].number(0.0, 1.0) == 1.0, exit_code::bad_input,
           where["partial_rotary_factor"].where(), ": ", where["partial_rotary_factor"].shown(),
           " is not supported for model_type '", model_type_in(document), "', expected 1");
  }
}

/// The rope settings that count: transformers 5 writes rope_parameters, earlier versions rope_scaling, and
/// where both are given the earlier name wins unless it is empty.
SUPEROFFLOAD_INLINE std::optional<json_field> rope_settings(json_field const& document) {
  for (auto const* const key : {"rope_scaling", "rope_parameters"}) {
    if (document.has(key)) {
      auto const rope = document[key];
      rope.require_object();
      if (!rope.raw().empty() || std::string_view{key} == "rope_parameters") {
        return rope;
      }
    }
  }
  return std::nullopt;
}

SUPEROFFLOAD_INLINE void read_theta(json_field const& document, std::optional<json_field> const& rope,
                                    family const& f, config& c) {
  auto const& holder = rope && rope->has("rope_theta") ? *rope : document;
  c.rope_theta = holder.has("rope_theta") ? holder["rope_theta"].number(1.0, 1e12) : f.missing.rope_theta;
}

SUPEROFFLOAD_INLINE void refuse_layer_types(json_field const& rope) {
  for (auto const& [key, value] : rope.raw().items()) {
    expect(!value.is_object(), exit_code::bad_input, rope.where(), ": field '", printable(key, 40),
           "': different settings for each type of layer are not supported, expected one for all layers");
  }
}

SUPEROFFLOAD_INLINE void read_rope(json_field const& document, family const& f, config& c) {
  auto const rope = rope_settings(document);
  read_theta(document, rope, f, c);
  if (f.reads_rope) {
    return;
  }
  refuse_partial_rotary(document, document);
  if (!rope) {
    return;
  }
  refuse_partial_rotary(document, *rope);
  refuse_layer_types(*rope);
  read_scaling(document, *rope, c);
}

/// Phi-3 may rotate a part of each head. Its only scaling is longrope, which had other names.
SUPEROFFLOAD_INLINE void read_phi3_rope(json_field const& document, config& c) {
  auto const rope = rope_settings(document);
  constexpr char const* part = "partial_rotary_factor";
  auto const& holder = rope && rope->has(part) ? *rope : document;
  if (holder.has(part)) {
    c.rotary_dim = static_cast<std::int64_t>(static_cast<double>(c.head_dim) * holder[part].number(0.0, 1.0));
    expect(c.rotary_dim > 0 && c.rotary_dim % 2 == 0, exit_code::bad_input, holder[part].where(), ": ",
           holder[part].shown(), " of head_dim ", c.head_dim, " is ", c.rotary_dim,
           ", expected an even number above 0");
  }
  if (!rope) {
    return;
  }
  auto const rule = rope_type_in(*rope);
  if (rule == "longrope" || rule == "su" || rule == "yarn") {
    read_longrope(*rope, extent(document, "original_max_position_embeddings", 4096, most_positions), c);
  } else if (rule != "default") {
    fail(exit_code::bad_input, (*rope)[rope_type_key(*rope)].where(), ": rope scaling '", printable(rule, 40),
         "' does not belong to model_type 'phi3', expected 'longrope' or 'default'");
  }
}

// Windows
// -----------------------------------------------------------------------------------------------------

/// `otherwise` where the field is missing; 0, no window, where it is null.
SUPEROFFLOAD_INLINE std::int32_t read_window(json_field const& document, std::int32_t otherwise) {
  constexpr char const* key = "sliding_window";
  if (!document.raw().contains(key)) {
    return otherwise;
  }
  return document.has(key) ? static_cast<std::int32_t>(document[key].integer(1, std::int64_t{1} << 30)) : 0;
}

/// Whether layer i slides, as layer_types says. \pre the field is there.
SUPEROFFLOAD_INLINE std::vector<bool> read_layer_types(json_field const& document, std::int64_t layers) {
  auto const types = document["layer_types"];
  types.require_array();
  std::vector<bool> slides(static_cast<std::size_t>(layers));
  expect(types.raw().size() == slides.size(), exit_code::bad_input, types.where(), ": ", types.raw().size(),
         " layers, expected num_hidden_layers ", layers);
  for (std::size_t i = 0; i < slides.size(); ++i) {
    auto const type = types[i].text();
    slides[i] = type == "sliding_attention";
    expect(slides[i] || type == "full_attention", exit_code::bad_input, types[i].where(), ": '",
           printable(type, 40), "' is not supported, expected 'full_attention' or 'sliding_attention'");
  }
  return slides;
}

/// `window` of the layers that slide: by layer_types, if the configuration has it, else by `usual`.
template <class Usual>
void read_windows(json_field const& document, std::int32_t window, Usual&& usual, config& c) {
  std::vector<bool> slides(static_cast<std::size_t>(c.layers));
  if (document.has("layer_types")) {
    slides = read_layer_types(document, c.layers);
  } else if (window > 0) {
    for (std::size_t i = 0; i < slides.size(); ++i) { slides[i] = usual(static_cast<std::int64_t>(i)); }
  }
  auto const first = std::ranges::find(slides, true);
  if (first == slides.end()) {
    return;
  }
  if (window == 0) {
    fail(exit_code::bad_input,
         document["layer_types"][static_cast<std::size_t>(first - slides.begin())].where(),
         ": sliding_attention, but there is no window: use_sliding_window is not true, or sliding_window is "
         "null");
  }
  for (bool const does : slides) { c.windows.push_back(does ? window : 0); }
}

/// `window` of all layers, 0: none. transformers ignores layer_types then; one that says something else is
/// refused.
SUPEROFFLOAD_INLINE void same_window_everywhere(json_field const& document, std::int32_t window, config& c) {
  if (document.has("layer_types")) {
    auto const slides = read_layer_types(document, c.layers);
    auto const other = std::ranges::find(slides, window == 0);
    if (other != slides.end()) {
      fail(exit_code::bad_input,
           document["layer_types"][static_cast<std::size_t>(other - slides.begin())].where(),
           ": transformers ignores layer_types for model_type '", model_type_in(document), "', where ",
           window == 0 ? "no layer" : "every layer",
           " has a window; remove layer_types to train the same model");
    }
  }
  if (window > 0) {
    c.windows.assign(static_cast<std::size_t>(c.layers), window);
  }
}

// What is special of each family
// -----------------------------------------------------------------------------------------------------

SUPEROFFLOAD_INLINE void read_llama(json_field const& document, config& c) {
  c.qkv_bias = c.output_bias = flag(document, "attention_bias", false);
  c.mlp_bias = flag(document, "mlp_bias", false);
  refuse_unless_zero(document, "attention_dropout");
  same_window_everywhere(document, 0, c);
}

SUPEROFFLOAD_INLINE void read_phi3(json_field const& document, config& c) {
  refuse_ignored(document, {"attention_bias", "mlp_bias"});
  for (auto const* const key : {"attention_dropout", "embd_pdrop", "resid_pdrop"}) {
    refuse_unless_zero(document, key);
  }
  read_phi3_rope(document, c);
  same_window_everywhere(document, read_window(document, 0), c);
}

SUPEROFFLOAD_INLINE void read_mistral(json_field const& document, config& c) {
  refuse_ignored(document, {"attention_bias", "mlp_bias"});
  refuse_unless_zero(document, "attention_dropout");
  same_window_everywhere(document, read_window(document, 4096), c);
}

SUPEROFFLOAD_INLINE std::int32_t read_optional_window(json_field const& document) {
  return flag(document, "use_sliding_window", false) ? read_window(document, 4096) : 0;
}

SUPEROFFLOAD_INLINE void read_qwen2(json_field const& document, config& c) {
  c.qkv_bias = true;
  refuse_ignored(document, {"mlp_bias"});
  refuse_unless_zero(document, "attention_dropout");
  auto const first =
      document.has("max_window_layers") ? document["max_window_layers"].integer(0, widest) : 28;
  read_windows(
      document, read_optional_window(document), [&](std::int64_t layer) { return layer >= first; }, c);
}

SUPEROFFLOAD_INLINE void read_qwen3(json_field const& document, config& c) {
  read_qwen2(document, c);
  c.qkv_bias = c.output_bias = flag(document, "attention_bias", false);
}

/// What transformers takes where the fields are missing.
struct default_experts {
  std::int64_t count, per_token;
};

SUPEROFFLOAD_INLINE void read_experts(json_field const& document, default_experts otherwise, config& c) {
  constexpr std::int64_t most = 4096;
  // transformers 5 writes num_local_experts for every family, earlier versions wrote num_experts for some.
  bool const earlier = document.raw().contains("num_experts");
  char const* const key = earlier ? "num_experts" : "num_local_experts";
  c.experts = extent(document, key, otherwise.count, most);
  if (earlier && document.raw().contains("num_local_experts")) {
    auto const same = document["num_local_experts"];
    expect(same.integer(1, most) == c.experts, exit_code::bad_input, same.where(), ": ", same.shown(),
           ", but num_experts is ", c.experts, "; remove the wrong one");
  }
  c.experts_per_token = extent(document, "num_experts_per_tok", otherwise.per_token, most);
  expect(c.experts_per_token <= c.experts, exit_code::bad_input, document.where(),
         ": field 'num_experts_per_tok' is ", c.experts_per_token, ", but there are ", key, " ", c.experts);
  if (flag(document, "output_router_logits", false)) {  // transformers reads the coefficient only then
    constexpr char const* weight = "router_aux_loss_coef";
    c.load_balancing_weight = document.raw().contains(weight) ? document[weight].number(0.0, 1e6) : 0.001;
  }
}

/// The layers that mlp_only_layers names, and those that are not every decoder_sparse_step-th, have one MLP.
/// An index that is not of a layer changes nothing.
SUPEROFFLOAD_INLINE std::vector<bool> read_dense_layers(json_field const& document, std::int64_t layers) {
  auto const step = extent(document, "decoder_sparse_step", 1);
  std::vector<bool> dense(static_cast<std::size_t>(layers));
  for (std::int64_t i = 0; i < layers; ++i) { dense[static_cast<std::size_t>(i)] = (i + 1) % step != 0; }
  if (document.has("mlp_only_layers")) {
    auto const named = document["mlp_only_layers"];
    named.require_array();
    for (std::size_t i = 0; i < named.raw().size(); ++i) {
      auto const layer = named[i].integer(-widest, widest);
      if (layer >= 0 && layer < layers) {
        dense[static_cast<std::size_t>(layer)] = true;
      }
    }
  }
  return std::ranges::find(dense, true) == dense.end() ? std::vector<bool>{} : dense;
}

SUPEROFFLOAD_INLINE void read_qwen3_moe(json_field const& document, config& c) {
  c.qkv_bias = c.output_bias = flag(document, "attention_bias", false);
  refuse_ignored(document, {"mlp_bias"});
  refuse_unless_zero(document, "attention_dropout");
  same_window_everywhere(document, read_optional_window(document), c);
  read_experts(document, {128, 8}, c);
  c.dense_layers = read_dense_layers(document, c.layers);
  c.dense_intermediate = c.dense_layers.empty() ? 0 : c.intermediate;
  expect(c.load_balancing_weight == 0.0 || c.dense_layers.empty() ||
             std::ranges::find(c.dense_layers, false) != c.dense_layers.end(),
         exit_code::bad_input, document.where(),
         ": field 'output_router_logits' is true, but no layer has experts; set it to false");
  c.intermediate = extent(document, "moe_intermediate_size", 768);
  c.normalizes_experts = flag(document, "norm_topk_prob", false);
}

SUPEROFFLOAD_INLINE void read_seed_oss(json_field const& document, config& c) {
  c.qkv_bias = flag(document, "attention_bias", true);
  c.output_bias = flag(document, "attention_out_bias", false);
  c.mlp_bias = flag(document, "mlp_bias", false);
  c.attention_dropout = rate(document, "attention_dropout", 0.1);
  c.residual_dropout = rate(document, "residual_dropout", 0.1);
  same_window_everywhere(document, 0, c);
}

/// Versions of transformers differ in whether they read `key`: only their common value is the same model.
SUPEROFFLOAD_INLINE double read_gate(json_field const& document, char const* key, double usual) {
  if (document.raw().contains(key)) {
    expect(document[key].number(0.0, 1e6) == usual, exit_code::bad_input, document[key].where(), ": ",
           document[key].shown(), " is not supported, expected ", usual,
           ": transformers up to 5.18 computes with that whatever this field says");
  }
  return usual;
}

SUPEROFFLOAD_INLINE void read_gpt_oss(json_field const& document, config& c) {
  c.qkv_bias = c.output_bias = flag(document, "attention_bias", true);
  c.has_sinks = true;
  refuse_ignored(document, {"mlp_bias"});
  refuse_unless_zero(document, "attention_dropout");
  read_experts(document, {128, 4}, c);
  if (document.has("experts_per_token")) {
    expect(document["experts_per_token"].integer(1, widest) == c.experts_per_token, exit_code::bad_input,
           document["experts_per_token"].where(), ": ", document["experts_per_token"].shown(),
           ", but num_experts_per_tok is ", c.experts_per_token);
  }
  c.swiglu_limit = read_gate(document, "swiglu_limit", 7.0);
  read_gate(document, "swiglu_alpha", 1.702);
  if (!rope_settings(document)) {
    c.scaling = {.kind = rope_scaling::rule::yarn,
                 .factor = 32.0,
                 .original_positions = original_positions(document, document, 4096),
                 .whole_turns = false,
                 .attention_factor = 0.1 * std::log(32.0) + 1.0};
  }
  read_windows(document, read_window(document, 128), [](std::int64_t layer) { return layer % 2 == 0; }, c);
  if (document.has("quantization_config")) {
    auto const method = document["quantization_config"]["quant_method"];
    expect(method.text() == "mxfp4", exit_code::bad_input, method.where(), ": '",
           printable(method.text(), 40), "' is not supported, expected 'mxfp4'");
    c.mxfp4_experts = true;
  }
}

inline constexpr family families[] = {
    {.model_type = "llama",
     .name = "LlamaForCausalLM",
     .read = read_llama,
     .missing = {32000, 4096, 11008, 32, 32, 0, 2048}},
    {.model_type = "mistral",
     .name = "MistralForCausalLM",
     .read = read_mistral,
     .missing = {32000, 4096, 14336, 32, 32, 8, 131072}},
    {.model_type = "phi3",
     .name = "Phi3ForCausalLM",
     .rms_norm_epsilon = 1e-5,
     .padding_token = 32000,
     .read = read_phi3,
     .missing = {32064, 3072, 8192, 32, 32, 0, 4096},
     .reads_rope = true},
    {.model_type = "qwen2",
     .name = "Qwen2ForCausalLM",
     .read = read_qwen2,
     .missing = {151936, 4096, 22016, 32, 32, 32, 32768}},
    {.model_type = "qwen3",
     .name = "Qwen3ForCausalLM",
     .head_dim = 128,
     .read = read_qwen3,
     .missing = {151936, 4096, 22016, 32, 32, 32, 32768}},
    {.model_type = "qwen3_moe",
     .name = "Qwen3MoeForCausalLM",
     .has_experts = true,
     .read = read_qwen3_moe,
     .missing = {151936, 2048, 6144, 24, 32, 4, 32768}},
    {.model_type = "seed_oss",
     .name = "SeedOssForCausalLM",
     .head_dim = 128,
     .padding_token = 1,
     .read = read_seed_oss,
     .missing = {155136, 4096, 27648, 64, 80, 8, 524288}},
    {.model_type = "gpt_oss",
     .name = "GptOssForCausalLM",
     .head_dim = 64,
     .rms_norm_epsilon = 1e-5,
     .has_experts = true,
     .may_be_quantised = true,
     .read = read_gpt_oss,
     .missing = {201088, 2880, 2880, 36, 64, 8, 131072, 150000.0}},
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

/// Fields that transformers 5 reads for every family, and that make another model.
SUPEROFFLOAD_INLINE void refuse_other_models(json_field const& document) {
  expect(flag(document, "is_causal", true), exit_code::bad_input, document.where(),
         ": field 'is_causal' is false, but attention in both directions is not supported, expected true");
  if (document.has("per_layer_config")) {
    auto const layers = document["per_layer_config"];
    layers.require_object();
    expect(layers.raw().empty(), exit_code::bad_input, layers.where(),
           ": layers that differ from each other are not supported, expected none");
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

SUPEROFFLOAD_INLINE void read_sizes(json_field const& document, family const& f, config& c) {
  auto const& missing = f.missing;
  auto const is_null = [&](char const* key) { return document.raw().contains(key) && !document.has(key); };
  c.vocabulary = extent(document, "vocab_size", missing.vocabulary);
  c.hidden = extent(document, "hidden_size", missing.hidden);
  c.intermediate = extent(document, "intermediate_size", missing.intermediate);
  c.layers = extent(document, "num_hidden_layers", missing.layers, 4096);
  c.heads = extent(document, "num_attention_heads", missing.heads, 4096);
  c.max_positions = extent(document, "max_position_embeddings", missing.max_positions, most_positions);
  auto const kv_heads = missing.kv_heads > 0 ? missing.kv_heads : c.heads;
  c.kv_heads =
      is_null("num_key_value_heads") ? c.heads : extent(document, "num_key_value_heads", kv_heads, 4096);
  expect(c.heads % c.kv_heads == 0, exit_code::bad_input, document.where(),
         ": field 'num_attention_heads' is ", c.heads, ", expected a multiple of num_key_value_heads ",
         c.kv_heads,
         document.has("num_key_value_heads") ? "" : ", which transformers takes where it is missing");
  if (document.has("head_dim") || (f.head_dim > 0 && !is_null("head_dim"))) {
    c.head_dim = extent(document, "head_dim", f.head_dim, 1024);
  } else {
    expect(c.hidden % c.heads == 0, exit_code::bad_input, document.where(), ": field 'hidden_size' is ",
           c.hidden, ", expected a multiple of num_attention_heads ", c.heads, " when head_dim is not given");
    c.head_dim = c.hidden / c.heads;
  }
}

SUPEROFFLOAD_INLINE void check_sizes(json_field const& document, config const& c) {
  expect(c.head_dim % 2 == 0, exit_code::bad_input, document.where(), ": field 'head_dim' is ", c.head_dim,
         ", expected an even number");
  // Every factor is at most 2^24, and layers and experts at most 2^12, so that no product of two exceeds 64
  // bits.
  double const block =
      static_cast<double>(c.hidden) * static_cast<double>((2 * c.heads + 2 * c.kv_heads) * c.head_dim) +
      3.0 * static_cast<double>(c.hidden) *
          static_cast<double>(
              std::max(c.intermediate * std::max<std::int64_t>(1, c.experts), c.dense_intermediate));
  double const parameters = static_cast<double>(c.layers) * block +
                            2.0 * static_cast<double>(c.vocabulary) * static_cast<double>(c.hidden);
  expect(parameters < static_cast<double>(most_parameters), exit_code::bad_input, document.where(),
         ": the sizes make ", parameters, " parameters, expected less than ", most_parameters);
}

/// The object in config.json.
SUPEROFFLOAD_INLINE io::json config_document(io::model_directory const& directory) {
  auto const name = directory.config_name();
  auto document = io::parse_json(directory.config(), name);
  json_field{document, name}.require_object();
  return document;
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::string model_type_of(io::model_directory const& directory) {
  auto const document = detail::config_document(directory);
  return detail::json_field{document, directory.config_name()}["model_type"].text();
}

SUPEROFFLOAD_INLINE config read_config(io::model_directory const& directory, family const* own) {
  auto const object = detail::config_document(directory);
  detail::json_field const document{object, directory.config_name()};

  auto const& f = detail::family_of(document, own);
  detail::check_class(document, f);
  config c;
  c.model_type = f.model_type;
  detail::read_sizes(document, f, c);
  c.rms_norm_epsilon = f.rms_norm_epsilon;
  if (document.has("rms_norm_eps")) {
    c.rms_norm_epsilon = document["rms_norm_eps"].number(0.0, 1.0);
    expect(c.rms_norm_epsilon > 0.0, exit_code::bad_input, document["rms_norm_eps"].where(),
           ": expected a number above 0");
  }
  c.tied_head = detail::flag(document, "tie_word_embeddings", false);
  if (document.has("hidden_act")) {
    auto const activation = document["hidden_act"].text();
    expect(activation == "silu" || activation == "swish", exit_code::bad_input,
           document["hidden_act"].where(), ": '", printable(activation, 40),
           "' is not supported, expected 'silu'");
  }
  if (!f.has_experts) {
    detail::refuse_any(document, {"num_experts", "num_local_experts", "num_experts_per_tok"});
  }
  expect(f.may_be_quantised || !document.has("quantization_config"), exit_code::bad_input, document.where(),
         ": field 'quantization_config': quantised checkpoints are not supported for this architecture; "
         "use the float32, float16 or bfloat16 checkpoint");
  detail::refuse_other_models(document);
  detail::read_padding(document, f, c);
  detail::read_rope(document, f, c);
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
    auto const size = static_cast<double>(c.rotated());
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

SUPEROFFLOAD_INLINE std::vector<double> inverse_frequencies(config const& c, std::int64_t longest_document) {
  bool const is_long = longest_document > c.scaling.original_positions;
  std::vector<double> result(static_cast<std::size_t>(c.rotated() / 2));
  for (std::size_t j = 0; j < result.size(); ++j) {
    auto const index = static_cast<double>(j);
    double const frequency = std::pow(c.rope_theta, -2.0 * index / static_cast<double>(c.rotated()));
    switch (c.scaling.kind) {
      case rope_scaling::rule::none:
      case rope_scaling::rule::dynamic:
        result[j] = frequency;
        break;
      case rope_scaling::rule::linear:
        result[j] = frequency / c.scaling.factor;
        break;
      case rope_scaling::rule::llama3:
        result[j] = detail::llama3_frequency(c.scaling, frequency);
        break;
      case rope_scaling::rule::yarn:
        result[j] = detail::yarn_ramp{c}.frequency(c.scaling, index, frequency);
        break;
      case rope_scaling::rule::longrope:
        result[j] = frequency / (is_long ? c.scaling.long_factors : c.scaling.short_factors)[j];
        break;
    }
  }
  return result;
}

}  // namespace superoffload::model
