// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/gemm_format.hpp>
#include <superoffload/io/model_directory.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace superoffload::io {
class json_field;
}  // namespace superoffload::io

namespace superoffload::model {

/// How rotary frequencies are scaled for long contexts.
struct rope_scaling {
  /// The rope_type; none: "default", no scaling.
  enum class rule { none, linear, dynamic, llama3, yarn, longrope };
  rule kind = rule::none;             ///< fields below that it does not use keep their defaults
  double factor = 1.0;                ///< of every rule: how many times longer the context becomes, 1 or more
  double low_frequency_factor = 1.0;  ///< of llama3
  double high_frequency_factor = 4.0;      ///< of llama3
  std::int64_t original_positions = 8192;  ///< the context that `factor` refers to, in tokens
  double fast_turns = 32.0;                ///< of yarn: beta_fast
  double slow_turns = 1.0;                 ///< of yarn: beta_slow
  bool whole_turns = true;                 ///< of yarn: truncate
  double attention_factor = 1.0;           ///< of yarn and longrope: factor of cosines and sines
  /// Of longrope: a divisor for each frequency, for documents of at most original_positions tokens.
  std::vector<double> short_factors{};
  std::vector<double> long_factors{};  ///< of longrope: the same for longer documents
};

/// The checked values of a decoder's config.json. Sizes in elements.
struct config {
  std::string model_type;               ///< in config.json; of a known family or the caller's own
  std::int64_t vocabulary = 0;          ///< rows of the embedding and of the head
  std::int64_t hidden = 0;              ///< columns of the hidden state
  std::int64_t intermediate = 0;        ///< of the MLP, or of each expert
  std::int64_t layers = 0;              ///< blocks
  std::int64_t heads = 0;               ///< query heads, a multiple of kv_heads
  std::int64_t kv_heads = 0;            ///< key heads, and as many value heads
  std::int64_t head_dim = 0;            ///< even; the default differs by family
  std::int64_t rotary_dim = 0;          ///< elements at the beginning of each head that are rotated; 0: all
  std::int64_t max_positions = 0;       ///< tokens of the longest document that the model was made for
  double rms_norm_epsilon = 1e-5;       ///< added to the mean square, under the root; above 0
  double rope_theta = 10000.0;          ///< the base of the rotary frequencies
  rope_scaling scaling{};               ///< of the rotary frequencies
  bool tied_head = false;               ///< is the head the embedding's table?
  std::int32_t padding_token = -1;      ///< its row of the embedding gets no gradient; -1: none
  bool qkv_bias = false;                ///< of queries, keys and values
  bool output_bias = false;             ///< of attention's output projection
  bool mlp_bias = false;                ///< of the MLP's three projections
  double attention_dropout = 0.0;       ///< probability, below 1, to drop an attention weight
  double residual_dropout = 0.0;        ///< the same of what is added to the residual
  std::vector<std::int32_t> windows{};  ///< of each layer's attention, 0: no limit; empty: no layer has one
  bool has_sinks = false;               ///< one more score of each head that carries no value
  std::int64_t experts = 0;             ///< of each layer that has some; 0: every layer has one MLP
  std::int64_t experts_per_token = 0;   ///< at most `experts`; 0 without experts
  bool normalizes_experts = false;      ///< do the weights of a token's experts sum to 1?
  std::vector<bool> dense_layers{};     ///< layers with one MLP in a model with experts; empty: none
  std::int64_t dense_intermediate = 0;  ///< of the MLP of those layers; 0 without them
  double load_balancing_weight = 0.0;   ///< of the routers' loss, beside the mean loss of tokens; 0: none
  double swiglu_limit = 0.0;            ///< gate and up are clamped to it; 0: no limit
  bool mxfp4_experts = false;           ///< the checkpoint has its experts as MXFP4 blocks and scales
  /// Of the linear layers in blocks. No file says it: the caller chooses.
  gemm_format gemms = gemm_format::element;
  /// Rows that a dense MLP computes at a time; 0: all. No file says it: the caller chooses.
  std::int64_t tiled_mlp = 0;

  [[nodiscard]] std::int64_t query_columns() const { return heads * head_dim; }  ///< of all query heads
  /// Columns of all key heads; the values have as many.
  [[nodiscard]] std::int64_t key_columns() const { return kv_heads * head_dim; }
  /// Elements of each head that are rotated.
  [[nodiscard]] std::int64_t rotated() const { return rotary_dim > 0 ? rotary_dim : head_dim; }
  /// The longest window of a layer, in tokens; 0: no layer has one.
  [[nodiscard]] std::int32_t longest_window() const {
    return windows.empty() ? 0 : *std::max_element(windows.begin(), windows.end());
  }
  /// The window of a layer, from 0, in tokens; 0: no limit.
  [[nodiscard]] std::int32_t window_of(std::int64_t layer) const {
    return windows.empty() ? 0 : windows[static_cast<std::size_t>(layer)];
  }
  /// Does a layer, from 0, have experts?
  [[nodiscard]] bool has_experts(std::int64_t layer) const {
    return experts > 0 && (dense_layers.empty() || !dense_layers[static_cast<std::size_t>(layer)]);
  }
};

/// What transformers takes for fields that are missing. 0: the field may not be missing.
struct missing_fields {
  std::int64_t vocabulary = 0;        ///< vocab_size
  std::int64_t hidden = 0;            ///< hidden_size
  std::int64_t intermediate = 0;      ///< intermediate_size
  std::int64_t layers = 0;            ///< num_hidden_layers
  std::int64_t heads = 0;             ///< num_attention_heads
  std::int64_t kv_heads = 0;          ///< 0: num_attention_heads
  std::int64_t max_positions = 2048;  ///< max_position_embeddings
  double rope_theta = 10000.0;        ///< of the rotary embedding
};

/// The configurations of one model_type: the defaults of transformers for missing fields, and the fields that
/// only they have. A user's own architecture declares it as `static family const& config_family()`, the block
/// of a decoder as `static constexpr family config_family`.
struct family {
  char const* model_type;           ///< in config.json
  char const* name;                 ///< the class in transformers
  std::int64_t head_dim = 0;        ///< 0: hidden_size / num_attention_heads
  double rms_norm_epsilon = 1e-6;   ///< where config.json has none
  std::int32_t padding_token = -1;  ///< -1: none
  bool has_experts = false;         ///< otherwise fields of experts are refused
  bool may_be_quantised = false;    ///< otherwise quantization_config is refused
  /// Reads the fields that only this family has, and refuses by name what its architecture does not support.
  /// Called last; may be null.
  void (*read)(io::json_field const&, config&) = nullptr;
  missing_fields missing{};  ///< what the checkpoints may leave out
  bool reads_rope = false;   ///< read() reads the settings of the rotary embedding but rope_theta
};

/// The family that A declares; null for one that this library knows.
template <class A>
constexpr family const* own_family() {
  if constexpr (requires { A::config_family(); }) {
    return &A::config_family();
  } else {
    return nullptr;
  }
}

/// The model_type in DIRECTORY/config.json, whatever it is. \throws error(bad_input) where there is none.
std::string model_type_of(io::model_directory const& directory);

/// Reads DIRECTORY/config.json of a model type that this library knows, or of the family `own`, which takes
/// precedence. Missing fields have the defaults of transformers.
/// \throws error(bad_input) naming the field for anything missing, out of range, contradictory or not
/// supported.
config read_config(io::model_directory const& directory, family const* own = nullptr);

/// rotated / 2 inverse frequencies, theta^(-2j/rotated), after the scaling rule. linear: all are divided by
/// factor. dynamic: as without scaling, which is what transformers computes up to max_positions. llama3:
/// wavelengths above original_positions / low_frequency_factor are divided by factor, those below
/// original_positions / high_frequency_factor are kept, those in between are blended linearly. yarn (arXiv
/// 2309.00071): a frequency is kept if original_positions have more than fast_turns turns, divided by factor
/// if they have fewer than slow_turns, and blended linearly in j in between. longrope (arXiv 2402.13753):
/// each is divided by its short factor, or where the longest document has more than original_positions
/// tokens, by its long factor.
std::vector<double> inverse_frequencies(config const& c, std::int64_t longest_document = 0);

}  // namespace superoffload::model

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/model/impl/config_inl.hpp>
#endif
