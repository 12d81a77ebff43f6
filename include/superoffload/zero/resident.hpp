// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/kernel/elementwise.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <cstdint>
#include <type_traits>
#include <vector>

namespace superoffload::zero {

/// All weights and gradients in device memory, whole.
///
/// Gradients of one micro-batch are T, or wide<T> where the unit asks for it. Several micro-batches are added
/// in wide<T> and rounded once; for T == wide<T> they are added where they are.
template <device_policy D, element T>
class resident_store {
  static constexpr bool rounds = !std::is_same_v<T, wide<T>>;

public:
  struct sizes {
    std::size_t weights = 0, gradients = 0;
  };
  /// Bytes of device memory that a store takes.
  static sizes bytes(std::vector<autograd::unit_layout> const& units, bool accumulates) {
    sizes total;
    for (auto const& u : units) {
      auto const n = static_cast<std::size_t>(u.elements());
      total.weights += n * sizeof(T);
      if (!u.trainable()) {
        continue;
      }
      total.gradients += n * sizeof(T);
      if (keeps_wide(u, accumulates)) {
        total.gradients += n * sizeof(wide<T>);
      }
    }
    return total;
  }

  resident_store(D& device, typename D::stream& stream, std::vector<autograd::unit_layout> const& units,
                 bool accumulates, gradient_sink sink)
      : stream_{&stream}, sink_{sink} {
    auto const total = bytes(units, accumulates);
    weights_ = buffer<D>{device, total.weights};
    gradients_ = buffer<D>{device, total.gradients};
    stream.fill_zero(weights_.data(), total.weights);
    stream.fill_zero(gradients_.data(), total.gradients);  // padding and frozen tensors stay zero
    auto* weight = weights_.template as<std::byte>();
    auto* gradient = gradients_.template as<std::byte>();
    auto const take = [&]<class U>(std::byte*& from, std::int64_t n, U*& to) {
      to = reinterpret_cast<U*>(from);
      from += static_cast<std::size_t>(n) * sizeof(U);
    };
    for (auto const& u : units) {
      entry e{
          .wide_gradient = rounds && u.wide_gradient(), .elements = u.elements(), .frozen = frozen_ranges(u)};
      take(weight, e.elements, e.weights);
      if (u.trainable()) {
        take(gradient, e.elements, e.gradient);
        if (keeps_wide(u, accumulates)) {
          take(gradient, e.elements, e.sum);
        }
      }
      entries_.push_back(std::move(e));
    }
  }

  void prefetch(int, autograd::pass) noexcept {}
  autograd::unit_buffers acquire(int unit, autograd::pass p) {
    auto const& e = at(unit);
    if (p == autograd::pass::forward) {
      return {e.weights, nullptr};
    }
    return {e.weights, e.wide_gradient ? static_cast<void*>(e.sum) : static_cast<void*>(e.gradient)};
  }
  void release(int, autograd::pass) noexcept {}

  void reduce(int unit) {
    auto const& e = at(unit);
    if (e.gradient == nullptr) {
      return;
    }
    if constexpr (rounds) {
      if (e.wide_gradient) {
        if (last_) {
          launch(*stream_, kernel::convert<wide<T>, T>{e.sum, e.gradient, e.elements});
        }
      } else if (e.sum != nullptr && !(first_ && last_)) {
        launch(*stream_, kernel::convert<T, wide<T>>{e.gradient, e.sum, e.elements, !first_});
        if (last_) {
          launch(*stream_, kernel::convert<wide<T>, T>{e.sum, e.gradient, e.elements});
        }
      }
    }
    if (!last_) {
      return;
    }
    for (auto const& hole : e.frozen) {
      stream_->fill_zero(e.gradient + hole.offset, static_cast<std::size_t>(hole.count) * sizeof(T));
    }
    sink_.ready(sink_.self, unit, e.gradient);
  }

  /// Which micro-batch of a step runs now: gradients are taken over from the first and are final after the
  /// last.
  void set_micro_batch(bool first, bool last) {
    first_ = first;
    last_ = last;
  }
  /// Must the unit's gradients be overwritten by the next micro-batch although it is not the first?
  [[nodiscard]] bool restarts_each_micro_batch(int unit) const { return rounds && !at(unit).wide_gradient; }

  [[nodiscard]] T* weights(int unit) const { return at(unit).weights; }
  /// The final gradient of the last step, zero in frozen tensors; null for a unit that is frozen as a whole.
  [[nodiscard]] T const* gradient(int unit) const { return at(unit).gradient; }

private:
  struct range {
    std::int64_t offset, count;
  };
  struct entry {
    T* weights = nullptr;
    T* gradient = nullptr;   // of a micro-batch or final; final only where wide_gradient
    wide<T>* sum = nullptr;  // the sum of several, or where layers write to
    bool wide_gradient = false;
    std::int64_t elements = 0;
    std::vector<range> frozen;
  };

  static bool keeps_wide(autograd::unit_layout const& u, bool accumulates) {
    return rounds && (u.wide_gradient() || accumulates);
  }
  static std::vector<range> frozen_ranges(autograd::unit_layout const& u) {
    std::vector<range> ranges;
    for (auto const& tensor : u.tensors()) {
      if (!tensor.trainable) {
        ranges.push_back({tensor.offset, tensor.count()});
      }
    }
    return ranges;
  }
  [[nodiscard]] entry const& at(int unit) const { return entries_[static_cast<std::size_t>(unit)]; }

  typename D::stream* stream_;
  gradient_sink sink_;
  buffer<D> weights_, gradients_;
  std::vector<entry> entries_;
  bool first_ = true;
  bool last_ = true;
};

/// The policy: nothing is sharded.
struct resident {
  using policy_category = category::sharding;
  template <device_policy D, element T>
  using store = resident_store<D, T>;
};

}  // namespace superoffload::zero
