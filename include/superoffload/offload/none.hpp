// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/kernel/adamw.hpp>
#include <superoffload/kernel/elementwise.hpp>
#include <superoffload/kernel/reduction.hpp>
#include <superoffload/optim/adamw.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace superoffload::offload {

/// What the whole gradient of a step turned out to be.
struct verdict {
  double norm = 0.0;  ///< L2 over all trainable parameters, before clipping
  bool finite = true;
};

/// The optimizer's state in device memory beside the weights: master (where T is not float itself), m and v,
/// fp32. Updated by the device after the verdict. One stream, no overlap: the simple path that the others
/// must equal.
template <device_policy D, element T>
class device_state {
  static constexpr bool separate_master = !std::is_same_v<T, float>;

public:
  /// Bytes of device memory.
  static std::size_t bytes(std::vector<autograd::unit_layout> const& units) {
    std::size_t total = 0;
    for (auto const& u : units) {
      if (!u.trainable()) {
        continue;
      }
      total += static_cast<std::size_t>(u.elements()) * sizeof(float) * (separate_master ? 3 : 2);
      total += static_cast<std::size_t>(kernel::norm_cells(u.elements())) * sizeof(double);
    }
    return total;
  }

  /// `weights(unit)` gives the working weights that the state belongs to, [elements] T in device memory.
  template <class Weights>
  device_state(D& device, typename D::stream& stream, std::vector<autograd::unit_layout> const& units,
               Weights&& weights)
      : stream_{&stream} {
    std::int64_t elements = 0;
    std::int64_t cells = 0;
    for (auto const& u : units) {
      entries_.push_back({.unit = &u, .elements = u.elements(), .weights = weights(u.id())});
      if (!u.trainable()) {
        continue;
      }
      elements += u.elements();
      cells += kernel::norm_cells(u.elements());
    }
    state_ =
        buffer<D>{device, static_cast<std::size_t>(elements) * sizeof(float) * (separate_master ? 3 : 2)};
    partial_ = buffer<D>{device, static_cast<std::size_t>(cells) * sizeof(double)};
    host_partial_ = buffer<D>{device, partial_.bytes(), memory::host};
    stream.fill_zero(state_.data(), state_.bytes());
    stream.fill_zero(partial_.data(), partial_.bytes());
    float* state = state_.template as<float>();
    double* partial = partial_.template as<double>();
    for (auto& e : entries_) {
      if (!e.unit->trainable()) {
        continue;
      }
      if constexpr (separate_master) {
        e.master = std::exchange(state, state + e.elements);
      } else {
        e.master = e.weights;
      }
      e.m = std::exchange(state, state + e.elements);
      e.v = std::exchange(state, state + e.elements);
      e.partial = std::exchange(partial, partial + kernel::norm_cells(e.elements));
    }
  }

  /// The masters have been written: makes the working weights from them.
  void emit_weights() {
    if constexpr (separate_master) {
      for (auto const& e : entries_) {
        if (e.master != nullptr) {
          launch(*stream_, kernel::emit_weights{e.master, e.weights, e.elements});
        }
      }
    }
  }

  /// The unit's gradient is final: its share of the norm is queued.
  void ready(int unit, T const* gradient) {
    auto& e = entries_[static_cast<std::size_t>(unit)];
    e.gradient = gradient;
    launch(*stream_, kernel::square_sum<T>{gradient, e.partial, e.elements});
  }

  /// Waits for every gradient. The sum is taken over the units in order, whatever order they came in.
  [[nodiscard]] verdict judge() {
    stream_->copy(host_partial_.data(), partial_.data(), partial_.bytes());
    stream_->synchronize();
    auto const* const partial = host_partial_.template as<double>();
    double sum = 0.0;
    for (std::size_t i = 0; i < partial_.bytes() / sizeof(double); ++i) { sum += partial[i]; }
    return {std::sqrt(sum), std::isfinite(sum)};
  }

  /// Queues the update of every trainable tensor. `rate`, `t` and `factor` as in optim::make_step.
  void update(optim::adamw_settings const& settings, double rate, std::int64_t t, float factor) {
    for (auto const& e : entries_) {
      for (auto const& tensor : e.unit->tensors()) {
        if (!tensor.trainable) {
          continue;
        }
        auto const at = tensor.offset;
        launch(*stream_,
               kernel::adamw<T>{e.master + at, e.m + at, e.v + at, e.gradient + at, e.weights + at,
                                tensor.count(), optim::make_step(settings, rate, t, factor, tensor.decays)});
      }
    }
  }

  /// fp32 state of a unit in device memory; null for a unit that is frozen as a whole.
  struct unit_state {
    float* master;
    float* m;
    float* v;
  };
  [[nodiscard]] unit_state at(int unit) const {
    auto const& e = entries_[static_cast<std::size_t>(unit)];
    return {e.master, e.m, e.v};
  }

private:
  struct entry {
    autograd::unit_layout const* unit;
    std::int64_t elements;
    T* weights;
    float* master = nullptr;
    float* m = nullptr;
    float* v = nullptr;
    double* partial = nullptr;
    T const* gradient = nullptr;
  };

  typename D::stream* stream_;
  buffer<D> state_, partial_, host_partial_;
  std::vector<entry> entries_;
};

/// The policy: nothing is offloaded.
struct none {
  using policy_category = category::offload;
  template <device_policy D, element T>
  using state = device_state<D, T>;
};

}  // namespace superoffload::offload
