// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/model/architecture.hpp>
#include <superoffload/model/layer_layout.hpp>
#include <superoffload/model/rope_tables.hpp>
#include <superoffload/nn/attention.hpp>
#include <superoffload/nn/batch.hpp>
#include <superoffload/nn/cross_entropy.hpp>
#include <superoffload/nn/embedding.hpp>
#include <superoffload/nn/gated_mlp.hpp>
#include <superoffload/nn/head_norm.hpp>
#include <superoffload/nn/linear.hpp>
#include <superoffload/nn/load_balancing.hpp>
#include <superoffload/nn/rms_norm.hpp>
#include <superoffload/nn/rotary.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace superoffload::model {

namespace detail {

/// Does a block take part in a load-balancing loss?
template <class Block, device_policy D, element T>
inline constexpr bool takes_load = std::invocable<Block const&, autograd::variable<D, T>, nn::batch const*,
                                                  nn::rotary_table<D, wide<T>> const*, nn::layer_load>;

}  // namespace detail

/// Everything of a decoder but its blocks: the embedding, the final norm, the head, tied to the embedding or
/// not, and the loss. A Block is one layer:
///   static std::string model_type();
///   static Block lay_out(config const&, layer_layout&);   for a checked configuration
///   static constexpr family config_family;   only where this library does not know its model_type
///   nn::attention_heads heads;
///   auto parts();   a tuple of references to its layers, which have each_parameter(f) and flops_per_row()
///   x = block(x, nn::batch const*, nn::rotary_table const*)
/// A block with experts takes an nn::layer_load as well, for the load-balancing loss of routers.
template <class Block>
class decoder {
public:
  static_assert(
      requires {
        { Block::model_type() } -> std::convertible_to<std::string>;
      }, "a decoder's block names the model_type of its checkpoints: static std::string model_type()");
  static_assert(
      requires(config const& c, layer_layout& l) {
        { Block::lay_out(c, l) } -> std::same_as<Block>;
      }, "a decoder's block is made by static Block lay_out(config const&, layer_layout&)");
  static_assert(
      requires(Block b) {
        { b.heads } -> std::same_as<nn::attention_heads&>;
      }, "a decoder's block has nn::attention_heads heads");
  static_assert(
      requires(Block b) { b.parts(); },
      "a decoder's block lists its layers: auto parts(), a tuple of references");

  using policy_category = category::architecture;                  ///< see core/policy.hpp
  static std::string model_type() { return Block::model_type(); }  ///< the model_type in config.json
  /// How a configuration of a model_type that this library does not know is read.
  static constexpr family const& config_family()
    requires requires { Block::config_family; }
  {
    return Block::config_family;
  }

  /// Lays out the units: the embedding, each layer, the head with its norm. Takes no memory for weights. The
  /// configuration is a checked one, as from read_config.
  explicit decoder(config const& c) : config_{c} {
    expect(c.load_balancing_weight == 0.0 || detail::takes_load<Block, described_device, bfloat16>,
           exit_code::bad_input, "model_type '", c.model_type,
           "' has a load-balancing loss in its configuration, but its layers take no "
           "part in one; expected a load_balancing_weight of 0");
    // A head that shares the table accumulates into its gradient, chunk by chunk.
    auto& embed = units_.emplace_back(0, "embedding", c.tied_head);
    table_ = {embed.add_matrix({{"model.embed_tokens.weight", c.vocabulary}}, c.hidden), c.padding_token};
    bool has_mlp = false;
    for (std::int64_t i = 0; i < c.layers; ++i) {
      // Every tile adds to the gradient.
      auto& unit =
          units_.emplace_back(static_cast<int>(i) + 1, "layer " + std::to_string(i), c.tiled_mlp > 0);
      layer_layout layout{config_, unit, i};
      auto& block = blocks_.emplace_back(Block::lay_out(config_, layout));
      each_part(block, [this](auto& part) { flops_per_row_ += part.flops_per_row(); });
      has_mlp = has_mlp || layout.has_mlp();
    }
    expect(c.tiled_mlp == 0 || has_mlp, exit_code::bad_input, "--tiled_mlp is ", c.tiled_mlp,
           ", but the layers of model_type '", c.model_type,
           "' have no MLP of layer_layout::mlp; expected 0");
    auto& head = units_.emplace_back(static_cast<int>(c.layers) + 1, "head", true);
    norm_ = {head.add_vector("model.norm.weight", c.hidden), c.rms_norm_epsilon};
    head_.weight = c.tied_head ? table_.table : head.add_matrix({{"lm_head.weight", c.vocabulary}}, c.hidden);
    flops_per_row_ += head_.flops_per_row();
  }

  [[nodiscard]] config const& settings() const noexcept { return config_; }  ///< a copy of the configuration
  /// The units by id. Change `trainable` and `decays` only, and call apply_freeze() then.
  [[nodiscard]] std::vector<autograd::unit_layout>& units() noexcept { return units_; }
  /// The units by id: embedding, layers, head.
  [[nodiscard]] std::vector<autograd::unit_layout> const& units() const noexcept { return units_; }

  /// Tells the layers which parameters are frozen completely, after `trainable` was changed in the units.
  void apply_freeze() {
    auto const settle = [this](autograd::parameter& p) {
      if (p) {
        p.trainable = autograd::trainable(units_[static_cast<std::size_t>(p.unit)], p);
      }
    };
    settle(table_.table);
    for (auto& block : blocks_) {
      each_part(block, [&](auto& part) { part.each_parameter(settle); });
    }
    norm_.each_parameter(settle);
    head_.each_parameter(settle);
  }

  /// Cosines and sines of every position.
  template <device_policy D, element T>
  using tables = rope_tables<D, wide<T>>;

  /// Tables for positions 0 to `positions` - 1; waits for the copy. \throws error(bad_input) as rope_tables
  template <device_policy D, element T>
  tables<D, T> make_tables(D& device, typename D::stream& stream, std::int64_t positions) const {
    return {device, stream, config_, positions};
  }
  /// Bytes of device memory of such tables.
  template <element T>
  [[nodiscard]] std::size_t table_bytes(std::int64_t positions) const {
    return rope_tables<described_device, wide<T>>::bytes(config_, positions);
  }

  /// The sum of the token losses of the batch; see nn::head_loss. Where a backward follows, and the
  /// configuration has a load-balancing loss, that is added, times its weight and the batch's divisor. All
  /// arguments must outlive the backward.
  template <device_policy D, element T>
  nn::loss_sum loss(autograd::tape<D, T>& t, nn::batch const& b, tables<D, T> const* table) const {
    nn::load_balancing balancing;
    if (t.recording() && config_.load_balancing_weight > 0.0) {
      balancing = {t, b, config_.layers, config_.experts,
                   static_cast<std::int32_t>(config_.experts_per_token)};
    }
    auto const x = decoded(t, b, table, balancing);
    auto const p = t.recording() ? autograd::pass::both : autograd::pass::forward;
    auto const sum = with_head(t, p, [&] { return nn::head_loss(norm_(x), head_.weight, b); });
    if (balancing) {
      balancing.add_to(t, sum, config_.load_balancing_weight);
    }
    return sum;
  }

  /// The logits of every row, [rows, vocabulary], for inspection and small models: all of them are in memory
  /// at once.
  template <device_policy D, element T>
  autograd::variable<D, T> logits(autograd::tape<D, T>& t, nn::batch const& b,
                                  tables<D, T> const* table) const {
    auto const x = decoded(t, b, table, {});
    return with_head(t, autograd::pass::forward, [&] { return head_(norm_(x)); });
  }

  /// FLOPs of the forward over `tokens` real tokens: GEMMs and causal attention; a multiply-add counts as
  /// two.
  [[nodiscard]] double forward_flops(std::int64_t tokens, visible_pairs const& visible) const {
    double flops = flops_per_row_ * static_cast<double>(tokens);
    for (auto const& block : blocks_) {
      auto const& h = block.heads;
      flops += 4.0 * static_cast<double>(std::int64_t{h.heads} * h.head_dim) *
               static_cast<double>(visible(h.window));
    }
    return flops;
  }

private:
  template <class F>
  static void each_part(Block& block, F&& f) {
    std::apply([&](auto&... part) { (f(part), ...); }, block.parts());
  }

  template <device_policy D, element T>
  autograd::variable<D, T> decoded(autograd::tape<D, T>& t, nn::batch const& b, tables<D, T> const* table,
                                   nn::load_balancing const& balancing) const {
    auto x = t.scope({0}, autograd::pass::forward, [&] { return table_(t, b); });
    auto const* const rotary = &table->of(b);
    int unit = 0;
    for (auto const& block : blocks_) {
      if constexpr (detail::takes_load<Block, D, T>) {
        auto const load = balancing.of(unit);
        x = t.unit(++unit, block, x, &b, rotary, load);
      } else {
        x = t.unit(++unit, block, x, &b, rotary);
      }
    }
    return x;
  }

  template <device_policy D, element T, class Body>
  auto with_head(autograd::tape<D, T>& t, autograd::pass p, Body&& body) const {
    auto const own = norm_.weight.unit;
    auto const shared = head_.weight.unit;
    return shared == own ? t.scope({own}, p, body) : t.scope({own, shared}, p, body);
  }

  config config_;
  std::vector<autograd::unit_layout> units_;
  nn::embedding table_;
  std::vector<Block> blocks_;
  nn::rms_norm norm_;
  nn::linear head_;
  double flops_per_row_ = 0.0;
};

}  // namespace superoffload::model
