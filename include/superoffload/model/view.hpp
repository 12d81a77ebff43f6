// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/model/architecture.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/nn/batch.hpp>
#include <superoffload/nn/cross_entropy.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace superoffload::model {

template <device_policy D, element T>
class owning_view;

/// A model of any architecture as an engine on D in T uses it: one indirect call for each pass. Code written
/// against a view is compiled once per device and element type; per architecture, only its forward is. A view
/// refers to a model, which outlives it; a copy refers to the same model.
template <device_policy D, element T>
class view {
public:
  /// The constant tables of a model, whatever their type.
  using tables = std::shared_ptr<void const>;

  /// Refers to `model`, which must outlive the view; a temporary is refused.
  template <architecture A>
  view(A const& model) noexcept  // NOLINT(google-explicit-constructor): like std::string_view
      : model_{&model}, units_{&model.units()}, config_{&model.settings()}, calls_{&calls_of<A>} {}
  template <architecture A>
  view(A const&& model) = delete;

  /// The units by id.
  [[nodiscard]] std::vector<autograd::unit_layout> const& units() const noexcept { return *units_; }
  [[nodiscard]] config const& settings() const noexcept { return *config_; }  ///< of the model
  /// FLOPs of the forward over `tokens` tokens; see decoder::forward_flops.
  [[nodiscard]] double forward_flops(std::int64_t tokens, visible_pairs const& visible) const {
    return calls_->forward_flops(model_, tokens, visible);
  }
  /// Bytes of device memory that make_tables() takes.
  [[nodiscard]] std::size_t table_bytes(std::int64_t positions) const {
    return calls_->table_bytes(model_, positions);
  }
  /// Tables for positions 0 to `positions` - 1, shared by all copies.
  [[nodiscard]] tables make_tables(D& device, typename D::stream& stream, std::int64_t positions) const {
    return calls_->make_tables(model_, device, stream, positions);
  }
  /// Tables for a dry tape.
  [[nodiscard]] tables no_tables() const { return calls_->no_tables(); }
  /// The sum of the token losses of the batch. All arguments must outlive the backward.
  nn::loss_sum loss(autograd::tape<D, T>& tape, nn::batch const& batch, tables const& t) const {
    return calls_->loss(model_, tape, batch, t.get());
  }
  /// The logits of every row, [rows, vocabulary].
  autograd::variable<D, T> logits(autograd::tape<D, T>& tape, nn::batch const& batch, tables const& t) const {
    return calls_->logits(model_, tape, batch, t.get());
  }

  /// The model with this config::tiled_mlp, and the same frozen tensors: itself, or another one, which is
  /// laid out for it. \throws error(bad_input) as its constructor does
  [[nodiscard]] owning_view<D, T> with_tiled_mlp(std::int64_t rows) const;

private:
  struct calls {
    double (*forward_flops)(void const*, std::int64_t tokens, visible_pairs const& visible);
    std::size_t (*table_bytes)(void const*, std::int64_t positions);
    tables (*make_tables)(void const*, D& device, typename D::stream& stream, std::int64_t positions);
    tables (*no_tables)();
    nn::loss_sum (*loss)(void const*, autograd::tape<D, T>&, nn::batch const&, void const* tables);
    autograd::variable<D, T> (*logits)(void const*, autograd::tape<D, T>&, nn::batch const&,
                                       void const* tables);
    owning_view<D, T> (*with_tiled_mlp)(void const*, std::int64_t rows);
  };
  template <class A>
  using tables_of = typename A::template tables<D, T>;
  template <class A>
  static A const& as(void const* model) noexcept {
    return *static_cast<A const*>(model);
  }
  template <class A>
  static constexpr calls calls_of{
      .forward_flops =
          [](void const* model, std::int64_t tokens, visible_pairs const& visible) {
            return as<A>(model).forward_flops(tokens, visible);
          },
      .table_bytes = [](void const* model,
                        std::int64_t positions) { return as<A>(model).template table_bytes<T>(positions); },
      .make_tables = [](void const* model, D& device, typename D::stream& stream,
                        std::int64_t positions) -> tables {
        return std::make_shared<tables_of<A> const>(
            as<A>(model).template make_tables<D, T>(device, stream, positions));
      },
      .no_tables = []() -> tables { return std::make_shared<tables_of<A> const>(); },
      .loss =
          [](void const* model, autograd::tape<D, T>& tape, nn::batch const& batch, void const* t) {
            return as<A>(model).template loss<D, T>(tape, batch, static_cast<tables_of<A> const*>(t));
          },
      .logits =
          [](void const* model, autograd::tape<D, T>& tape, nn::batch const& batch, void const* t) {
            return as<A>(model).template logits<D, T>(tape, batch, static_cast<tables_of<A> const*>(t));
          },
      .with_tiled_mlp =
          [](void const* model, std::int64_t rows) {
            auto settings = as<A>(model).settings();
            settings.tiled_mlp = rows;
            auto const other = std::make_shared<A>(settings);
            for (std::size_t u = 0; u < other->units().size(); ++u) {
              other->units()[u].tensors() = as<A>(model).units()[u].tensors();
            }
            other->apply_freeze();
            return owning_view<D, T>{other};
          }};

  void const* model_;
  std::vector<autograd::unit_layout> const* units_;
  config const* config_;
  calls const* calls_;
};

/// A view that keeps a model of its own alive.
template <device_policy D, element T>
class owning_view : public view<D, T> {
public:
  /// Refers to the model of another view, which outlives this one.
  explicit owning_view(view<D, T> const& other) : view<D, T>{other} {}
  /// Shares the model.
  template <architecture A>
  explicit owning_view(std::shared_ptr<A> model) : view<D, T>{*model}, model_{std::move(model)} {}

private:
  std::shared_ptr<void const> model_;
};

template <device_policy D, element T>
owning_view<D, T> view<D, T>::with_tiled_mlp(std::int64_t rows) const {
  return rows == config_->tiled_mlp ? owning_view<D, T>{*this} : calls_->with_tiled_mlp(model_, rows);
}

/// A view as the type of a function's parameter to which any architecture can be passed: D and T are deduced
/// from other parameters.
template <device_policy D, element T>
using as_view = std::type_identity_t<view<D, T>>;

}  // namespace superoffload::model
