// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/model/architecture.hpp>
#include <superoffload/nn/attention.hpp>
#include <superoffload/nn/batch.hpp>
#include <superoffload/nn/cross_entropy.hpp>
#include <superoffload/nn/embedding.hpp>
#include <superoffload/nn/linear.hpp>
#include <superoffload/nn/rms_norm.hpp>
#include <superoffload/nn/rotary.hpp>
#include <superoffload/nn/swiglu.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace superoffload::model {

/// One decoder layer: grouped-query attention and a gated MLP, each behind a norm and added to the stream.
struct llama_block {
  nn::rms_norm attention_norm, mlp_norm;
  nn::linear qkv, o, gate_up, down;
  nn::attention_heads heads;

  template <device_policy D, element T>
  autograd::variable<D, T> operator()(autograd::variable<D, T> x, nn::batch const* b,
                                      nn::rotary_table<D, wide<T>> const* table) const {
    auto const turned = nn::rotary(qkv(attention_norm(x)), *b, *table, heads);
    x = o.onto(x, nn::attention(turned, *b, heads));
    return down.onto(x, nn::swiglu(gate_up(mlp_norm(x))));
  }
};

/// Llama 2 and 3 (arXiv 2407.21783): any size, tied or untied head.
class llama {
public:
  using policy_category = category::architecture;
  static std::string model_type() { return "llama"; }

  explicit llama(config const& c) : config_{c} {
    auto& embed = units_.emplace_back(0, "embedding", true);
    table_ = {embed.add_matrix({{"model.embed_tokens.weight", c.vocabulary}}, c.hidden)};
    for (std::int64_t i = 0; i < c.layers; ++i) { blocks_.push_back(lay_out_block(static_cast<int>(i))); }
    auto& head = units_.emplace_back(static_cast<int>(c.layers) + 1, "head", true);
    norm_ = {head.add_vector("model.norm.weight", c.hidden), c.rms_norm_epsilon};
    head_ = c.tied_head ? table_.table : head.add_matrix({{"lm_head.weight", c.vocabulary}}, c.hidden);
  }

  [[nodiscard]] config const& settings() const noexcept { return config_; }
  [[nodiscard]] std::vector<autograd::unit_layout>& units() noexcept { return units_; }
  [[nodiscard]] std::vector<autograd::unit_layout> const& units() const noexcept { return units_; }

  /// Tells the layers which parameters are frozen as a whole, after `trainable` was changed in the units.
  void apply_freeze() {
    auto const settle = [this](autograd::parameter& p) {
      if (p) {
        p.trainable = autograd::trainable(units_[static_cast<std::size_t>(p.unit)], p);
      }
    };
    settle(table_.table);
    for (auto& b : blocks_) {
      for (auto* p : {&b.attention_norm.weight, &b.mlp_norm.weight, &b.qkv.weight, &b.o.weight,
                      &b.gate_up.weight, &b.down.weight}) {
        settle(*p);
      }
    }
    settle(norm_.weight);
    settle(head_);
  }

  template <device_policy D, element T>
  using tables = nn::rotary_table<D, wide<T>>;

  template <device_policy D, element T>
  tables<D, T> make_tables(D& device, typename D::stream& stream, std::int64_t positions) const {
    return {device, stream, inverse_frequencies(config_), positions};
  }
  template <element T>
  [[nodiscard]] std::size_t table_bytes(std::int64_t positions) const {
    return static_cast<std::size_t>(config_.head_dim * positions) * sizeof(wide<T>);
  }

  /// The sum of the token losses of the batch; see nn::head_loss. Everything passed must outlive the
  /// backward.
  template <device_policy D, element T>
  nn::loss_sum loss(autograd::tape<D, T>& t, nn::batch const& b, tables<D, T> const* table) const {
    auto const x = decoded(t, b, table);
    auto const p = t.recording() ? autograd::pass::both : autograd::pass::forward;
    return with_head(t, p, [&] { return nn::head_loss(norm_(x), head_, b); });
  }

  /// The logits of every row, [rows, vocabulary], for inspection and small models: they are all in memory at
  /// once.
  template <device_policy D, element T>
  autograd::variable<D, T> logits(autograd::tape<D, T>& t, nn::batch const& b,
                                  tables<D, T> const* table) const {
    auto const x = decoded(t, b, table);
    return with_head(t, autograd::pass::forward, [&] { return nn::linear{head_}(norm_(x)); });
  }

  /// FLOPs of the forward over `tokens` real tokens with `visible` pairs of query and visible key: matrix
  /// products and causal attention, a multiply-add counted as two.
  [[nodiscard]] double forward_flops(std::int64_t tokens, std::int64_t visible) const {
    auto const& c = config_;
    auto const query = c.heads * c.head_dim;
    auto const matrices =
        c.hidden * (2 * query + 2 * c.kv_heads * c.head_dim) + 3 * c.hidden * c.intermediate;
    return static_cast<double>(c.layers) *
               (2.0 * static_cast<double>(matrices) * static_cast<double>(tokens) +
                4.0 * static_cast<double>(query) * static_cast<double>(visible)) +
           2.0 * static_cast<double>(c.vocabulary * c.hidden) * static_cast<double>(tokens);
  }

private:
  llama_block lay_out_block(int layer) {
    auto const& c = config_;
    auto const prefix = "model.layers." + std::to_string(layer) + ".";
    auto const query = c.heads * c.head_dim;
    auto const key = c.kv_heads * c.head_dim;
    auto& unit = units_.emplace_back(layer + 1, "layer " + std::to_string(layer));
    auto const norm = [&](char const* name) {
      return nn::rms_norm{unit.add_vector(prefix + name, c.hidden), c.rms_norm_epsilon};
    };
    llama_block block;
    block.attention_norm = norm("input_layernorm.weight");
    block.qkv.weight = unit.add_matrix({{prefix + "self_attn.q_proj.weight", query},
                                        {prefix + "self_attn.k_proj.weight", key},
                                        {prefix + "self_attn.v_proj.weight", key}},
                                       c.hidden);
    block.o.weight = unit.add_matrix({{prefix + "self_attn.o_proj.weight", c.hidden}}, query);
    block.mlp_norm = norm("post_attention_layernorm.weight");
    block.gate_up.weight = unit.add_matrix(
        {{prefix + "mlp.gate_proj.weight", c.intermediate}, {prefix + "mlp.up_proj.weight", c.intermediate}},
        c.hidden);
    block.down.weight = unit.add_matrix({{prefix + "mlp.down_proj.weight", c.hidden}}, c.intermediate);
    block.heads = {static_cast<std::int32_t>(c.heads), static_cast<std::int32_t>(c.kv_heads),
                   static_cast<std::int32_t>(c.head_dim)};
    return block;
  }

  template <device_policy D, element T>
  autograd::variable<D, T> decoded(autograd::tape<D, T>& t, nn::batch const& b,
                                   tables<D, T> const* table) const {
    auto x = t.scope({0}, autograd::pass::forward, [&] { return table_(t, b); });
    for (auto const& block : blocks_) { x = t.unit(block.down.weight.unit, block, x, &b, table); }
    return x;
  }

  template <device_policy D, element T, class Body>
  auto with_head(autograd::tape<D, T>& t, autograd::pass p, Body&& body) const {
    auto const own = norm_.weight.unit;
    return head_.unit == own ? t.scope({own}, p, body) : t.scope({own, head_.unit}, p, body);
  }

  config config_;
  std::vector<autograd::unit_layout> units_;
  nn::embedding table_;
  std::vector<llama_block> blocks_;
  nn::rms_norm norm_;
  autograd::parameter head_;
};

static_assert(architecture<llama>);

}  // namespace superoffload::model
