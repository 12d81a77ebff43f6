// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/comm/single.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/described_device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/zero/buffer_sizes.hpp>
#include <superoffload/zero/gradient_buffers.hpp>
#include <superoffload/zero/gradient_layout.hpp>
#include <superoffload/zero/offloaded_units.hpp>
#include <superoffload/zero/prefetcher.hpp>
#include <superoffload/zero/sharding_policy.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

namespace superoffload::zero {

/// The store of one device. Weights live in device memory, or in pinned host memory, from which they are
/// prefetched into device buffers before each forward and backward. Gradients live in their own device
/// memory, or in shared device buffers that they leave as soon as their reader has them.
/// store_options::offloaded says which; if nothing is offloaded, this is the resident store. With several
/// micro-batches, the sum of an offloaded gradient lives in pinned host memory as wide<T>, and is added to in
/// a device buffer.
///
/// The sink gets each final gradient. Its `taken` is called before the buffer of an offloaded gradient is
/// overwritten. The optimizer writes new offloaded weights in host memory; the store fetches them anew after
/// reduce().
template <device_policy D, element T>
class offloaded_store {
public:
  using group_type = comm::single_communicator<D>;  ///< of a null pointer: there are no ranks

  /// The memory of a store with these options. \throws error(internal) with a group.
  static store_bytes bytes(std::vector<autograd::unit_layout> const& units, store_options const& o,
                           group_type const* group) {
    expect(group == nullptr, exit_code::internal, "zero::offloaded is for one device: expected no group");
    auto const accumulates = o.accumulates;
    auto const& f = o.offloaded;
    auto total = bytes_beside_buffers(units, accumulates, f);
    total.weights += weight_buffers_of(units, o).total();
    total.gradients += gradient_buffers_of(units, o).total();
    if (accumulates) {
      for (auto const sum : offloaded_gradients_of(units, o)) { total.host += sum; }
    }
    return total;
  }

  /// Zeroes all memory and waits for that. `group` must be null; `times`, which may be null, records copies.
  offloaded_store(D& device, typename D::stream& stream, std::vector<autograd::unit_layout> const& units,
                  store_options const& o, group_type*, gradient_sink<typename D::stream> sink,
                  recorder<D>* times = nullptr)
      : stream_{&stream},
        sink_{sink},
        gradient_buffers_{
            device, stream, gradient_buffers_of(units, o), offloaded_gradients_of(units, o), o.accumulates,
            sink,   times},
        buffers_{device, stream, weight_buffers_of(units, o), times} {
    auto const accumulates = o.accumulates;
    auto const& f = o.offloaded;
    auto const total = bytes_beside_buffers(units, accumulates, f);
    weights_ = buffer<D>{device, total.weights};
    host_weights_ = buffer<D>{device, total.host, memory::host};
    gradients_ = buffer<D>{device, total.gradients};
    drain_at_end const drained{stream};
    stream.fill_zero(weights_.data(), weights_.bytes());
    stream.fill_zero(gradients_.data(), gradients_.bytes());  // padding and frozen tensors stay zero
    if (total.host > 0) {
      std::memset(host_weights_.data(), 0, total.host);
    }
    auto* weight = weights_.template as<std::byte>();
    auto* host_weight = host_weights_.template as<std::byte>();
    auto* gradient = gradients_.template as<std::byte>();
    for (auto const& u : units) {
      entry e;
      e.offloaded = f.weights_of(u.id());
      auto*& from = e.offloaded ? host_weight : weight;
      e.bytes = weight_bytes(u);
      e.weights = reinterpret_cast<T*>(std::exchange(from, from + e.bytes));
      if (u.trainable()) {
        e.trains = true;
        e.gradient_offloaded = f.gradient_of(u.id());
        e.unwritten = unwritten(u, e.gradient_offloaded);
        e.gradient.is_wide = keeps_wide<T>(u, accumulates);
        if (!e.gradient_offloaded) {
          e.gradient.data = std::exchange(gradient, gradient + gradient_bytes<T>(u, accumulates));
        }
      }
      entries_.push_back(std::move(e));
    }
  }

  /// Begins to fetch the unit's weights, if a buffer is free. They must be up to date by now. The sum of its
  /// gradient is fetched after the next reduce().
  void prefetch(int unit, autograd::pass p) noexcept {
    auto const& e = at(unit);
    if (e.offloaded) {
      try {
        buffers_.fetch(unit, e.bytes, copy_of(e));
      } catch (...) {}  // a device that failed says so at the next call
    }
    if (e.gradient_offloaded && p != autograd::pass::forward) {
      gradient_buffers_.expect_next(unit);
    }
  }
  /// The unit's weights and, but for a plain forward, its gradient, for work that is queued on the compute
  /// stream from now on. \throws error(internal) when all buffers are in use.
  autograd::unit_buffers acquire(int unit, autograd::pass p) {
    auto const& e = at(unit);
    void const* const weights = e.offloaded ? buffers_.acquire(unit, e.bytes, copy_of(e)) : e.weights;
    if (p == autograd::pass::forward) {
      return {.weights = weights};
    }
    return {weights, e.gradient_offloaded ? gradient_buffers_.acquire(unit) : e.gradient.data,
            e.gradient.is_wide};
  }
  /// Work queued later may not use the weights.
  void release(int unit, autograd::pass) noexcept {
    if (at(unit).offloaded) {
      buffers_.release(unit);
    }
  }

  /// The backward of the unit's micro-batch is queued. Hands the gradient of the step's last one to the sink,
  /// and sends the sum of an earlier one to the host if it is offloaded.
  void reduce(int unit) {
    auto const& e = at(unit);
    if (e.trains && last_) {
      auto const final = gradient(unit);
      clear<T>(*stream_, final, e.unwritten);
      if (e.offloaded) {
        buffers_.forget(unit);  // its update comes next
      }
      if (e.gradient_offloaded) {
        gradient_buffers_.finish(unit, final);
      } else {
        sink_.ready(sink_.self, unit, final);
      }
    } else if (e.gradient_offloaded) {
      gradient_buffers_.to_host(unit);
    }
    gradient_buffers_.bring_next();
  }

  /// Is the next micro-batch the step's last, after which gradients are final?
  void set_last_micro_batch(bool last) { last_ = last; }
  void settle() noexcept {}           ///< nothing to do: reduce() hands over every gradient
  void weights_changed() noexcept {}  ///< nothing to do: reduce() has made fetched copies invalid

  /// The unit's weights, [elements] T: in device memory, or in host memory if they are offloaded.
  [[nodiscard]] T* weights(int unit) const { return at(unit).weights; }
  /// The stream whose work reads them first.
  [[nodiscard]] typename D::stream& reader(int unit) {
    return at(unit).offloaded ? buffers_.transfer() : *stream_;
  }
  /// Call before they are written from outside a step: waits until nothing reads them.
  void expect_writes(int unit) {
    if (at(unit).offloaded) {
      buffers_.drop(unit);
    }
  }
  /// The final gradient of the last step, zero in frozen tensors. Null for a frozen unit, and for an
  /// offloaded gradient whose buffer is taken by another.
  [[nodiscard]] unit_gradient gradient(int unit) const {
    auto g = at(unit).gradient;
    if (at(unit).gradient_offloaded) {
      g.data = gradient_buffers_.memory_of(unit);
    }
    return g;
  }

private:
  struct entry {
    T* weights = nullptr;
    std::size_t bytes = 0;  // of weights
    bool offloaded = false;
    bool trains = false;
    bool gradient_offloaded = false;
    unit_gradient gradient;  // without data if offloaded
    std::vector<unit_range> unwritten;
  };
  static std::size_t weight_bytes(autograd::unit_layout const& u) {
    return static_cast<std::size_t>(u.elements()) * sizeof(T);
  }
  static buffer_sizes<std::size_t> weight_buffers_of(std::vector<autograd::unit_layout> const& units,
                                                     store_options const& o) {
    std::vector<std::size_t> bytes;
    for (auto const& u : units) { bytes.push_back(o.offloaded.weights_of(u.id()) ? weight_bytes(u) : 0); }
    return {bytes, o.offloaded.weight_buffers, o.buffers.tied_embeddings};
  }
  static buffer_sizes<std::size_t> gradient_buffers_of(std::vector<autograd::unit_layout> const& units,
                                                       store_options const& o) {
    return {offloaded_gradients_of(units, o), o.offloaded.gradient_buffers, o.buffers.tied_embeddings};
  }
  /// By unit, the bytes of an offloaded gradient.
  static std::vector<std::size_t> offloaded_gradients_of(std::vector<autograd::unit_layout> const& units,
                                                         store_options const& o) {
    std::vector<std::size_t> bytes;
    for (auto const& u : units) {
      bool const offloaded = u.trainable() && o.offloaded.gradient_of(u.id());
      bytes.push_back(offloaded ? gradient_bytes<T>(u, o.accumulates) : 0);
    }
    return bytes;
  }
  /// Bytes without shared buffers and sums.
  static store_bytes bytes_beside_buffers(std::vector<autograd::unit_layout> const& units, bool accumulates,
                                          offloaded_units const& f) {
    store_bytes total;
    for (auto const& u : units) {
      (f.weights_of(u.id()) ? total.host : total.weights) += weight_bytes(u);
      if (u.trainable() && !f.gradient_of(u.id())) {
        total.gradients += gradient_bytes<T>(u, accumulates);
      }
    }
    return total;
  }

  static auto copy_of(entry const& e) {
    return [&e](auto& stream, void* to) { stream.copy(to, e.weights, e.bytes); };
  }

  [[nodiscard]] entry const& at(int unit) const { return entries_[static_cast<std::size_t>(unit)]; }

  typename D::stream* stream_;
  gradient_sink<typename D::stream> sink_;
  buffer<D> weights_, host_weights_, gradients_;
  std::vector<entry> entries_;
  bool last_ = true;
  gradient_buffers<D> gradient_buffers_;
  prefetcher<D> buffers_;  // last: its queued copies read the buffers above
};

/// The policy: nothing is sharded; engine_options::configuration says which weights and gradients are
/// offloaded.
struct offloaded {
  using policy_category = category::sharding;  ///< see core/policy.hpp
  static constexpr bool offloads = true;       ///< weights and gradients may be offloaded
  static constexpr bool alone = true;          ///< an engine needs no group
  static constexpr bool shards = false;        ///< an engine cannot be a rank
  template <device_policy D, element T>
  using store = offloaded_store<D, T>;  ///< the store on device D, in element type T
};
static_assert(sharding_policy<offloaded, described_device, bfloat16>);

}  // namespace superoffload::zero
