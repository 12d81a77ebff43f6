// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/kernel/reduction.hpp>
#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/planning/plan.hpp>
#include <superoffload/offload/planning/workload.hpp>
#include <superoffload/offload/state/state_bytes.hpp>
#include <superoffload/zero/buffer_sizes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace superoffload::offload {

/// Counts the bytes that plans take, and compares them with a machine's memory.
class memory_budget {
public:
  /// `units` and `w` must outlive it. Of the machine's memory, what it reserves is not available.
  memory_budget(std::vector<autograd::unit_layout> const& units, workload const& w, machine const& m)
      : units_{units},
        w_{w},
        shared_{m.device.is_the_host},
        device_{m.device.memory - std::min(m.device.memory, m.device.reserve)},
        host_{m.host.memory - std::min(m.host.memory, m.host.reserve)} {}

  /// @{
  /// Bytes available.
  [[nodiscard]] std::size_t device() const { return device_; }
  [[nodiscard]] std::size_t host() const { return host_; }
  /// @}

  /// Fills in the plan's bytes and shares.
  void count(plan& p) const {
    auto& device = p.on_device = {};
    auto& host = p.on_host = {};
    auto const& offloaded = p.state.offloaded;
    // By unit, bytes that take turns in device buffers.
    std::vector<std::size_t> weights(units_.size()), gradients(units_.size());
    std::size_t cells = 0;
    auto const copies = copies_of(p);
    for (std::size_t u = 0; u < units_.size(); ++u) {
      auto const n = static_cast<std::size_t>(units_[u].elements());
      cells += units_[u].trainable() ? static_cast<std::size_t>(kernel::norm_cells(units_[u].elements())) : 0;
      if (offloaded.weights_of(units_[u].id())) {
        weights[u] = n * element_bytes();
        host.weights += n * element_bytes();
      } else {
        device.weights += copies * n * element_bytes();
      }
      if (!units_[u].trainable()) {
        continue;
      }
      if (copies > 1 && p.state.sums_in_copies) {
        device.gradients += copies * n * sum_bytes;
      }
      auto const bytes = gradient_bytes(u);
      if (offloaded.gradient_of(units_[u].id())) {
        gradients[u] = bytes;
        host.gradients += adds_up() ? bytes : 0;
      } else {
        device.gradients += bytes;
      }
    }
    device.weights +=
        in_buffers(weights, offloaded.weight_buffers) + in_buffers(w_.whole_weights, p.state.buffers.weights);
    device.gradients += in_buffers(gradients, offloaded.gradient_buffers) + w_.whole_gradients;
    if (p.state.weight_ranks == 1 && p.state.sums_in_copies) {
      device.gradients += (copies - 1) * largest_shard() * (sum_bytes - element_bytes());
    }
    auto const state = bytes_of(p.state, element_bytes());
    device.state = state.resident;
    host.state = state.whole + state.in_place + state.device_updated;
    host.pinned_buffers = state.pinned_buffer * static_cast<std::size_t>(p.state.pinned_buffers);
    device.staging_buffers =
        state.pinned_buffer + state.staging_buffer * static_cast<std::size_t>(p.state.staging_buffers);
    device.activations = w_.levels[p.level].activations;
    host.activations = w_.levels[p.level].on_host;
    device.workspaces = w_.workspaces + cells * sizeof(double);
    host.workspaces = w_.host_workspaces + cells * sizeof(double);
    p.pinned = host.total() - state.whole - state.in_place;
    p.device_available = device_;
    p.host_available = host_;
    auto const& in_tier = state.elements;
    auto const elements = std::max<std::int64_t>(1, in_tier[0] + in_tier[1] + in_tier[2]);
    auto const share = [&](tier where) {
      return static_cast<double>(in_tier[static_cast<std::size_t>(where)]) / static_cast<double>(elements);
    };
    p.host = share(tier::host);
    p.device_updated = share(tier::device_updated);
    p.resident = p.host + p.device_updated == 0.0 ? 1.0 : share(tier::resident);
  }
  /// @{
  /// Bytes that a plan takes of each memory; of both if device and host share one.
  [[nodiscard]] std::size_t on_device(plan const& p) const { return taken(p.on_device, p.on_host); }
  [[nodiscard]] std::size_t on_host(plan const& p) const { return taken(p.on_host, p.on_device); }
  /// @}
  /// @{
  /// Bytes of each memory that a plan leaves; negative if it does not fit.
  [[nodiscard]] std::int64_t left_on_device(plan const& p) const {
    return static_cast<std::int64_t>(device_) - static_cast<std::int64_t>(on_device(p));
  }
  [[nodiscard]] std::int64_t left_on_host(plan const& p) const {
    return static_cast<std::int64_t>(host_) - static_cast<std::int64_t>(on_host(p));
  }
  /// @}
  /// Is there enough of both memories? Call count() first.
  [[nodiscard]] bool fits(plan const& p) const { return left_on_device(p) >= 0 && left_on_host(p) >= 0; }
  /// Bytes of a unit's whole gradient.
  [[nodiscard]] std::size_t gradient_bytes(std::size_t unit) const {
    bool const wide = units_[unit].wide_gradient() || adds_up();
    return static_cast<std::size_t>(units_[unit].elements()) * (wide ? sum_bytes : element_bytes());
  }
  /// Of a working weight.
  [[nodiscard]] std::size_t element_bytes() const { return static_cast<std::size_t>(w_.element_bytes); }
  /// Are the gradients of several micro-batches added up?
  [[nodiscard]] bool adds_up() const { return w_.micro_batches > 1; }

private:
  static constexpr std::size_t sum_bytes = 4;  // of an element in a sum of gradients

  /// The copies of the weights, of which a rank has a shard each.
  [[nodiscard]] std::size_t copies_of(plan const& p) const {
    return p.state.weight_ranks == 0 ? 1
                                     : static_cast<std::size_t>(w_.with_ranks.ranks / p.state.weight_ranks);
  }
  /// Elements of the largest shard with a gradient. Parts of a sum over as many copies as ranks take more
  /// scratch than those of a gradient.
  [[nodiscard]] std::size_t largest_shard() const {
    std::int64_t most = 0;
    for (auto const& u : units_) { most = u.trainable() ? std::max(most, u.elements()) : most; }
    return static_cast<std::size_t>(most);
  }
  /// Bytes of so many device buffers in which units of these bytes take turns.
  [[nodiscard]] std::size_t in_buffers(std::vector<std::size_t> const& units, int buffers) const {
    return zero::buffer_sizes<std::size_t>{units, buffers, w_.with_ranks.tied_to_last >= 0}.total();
  }
  [[nodiscard]] std::size_t taken(tier_bytes const& here, tier_bytes const& there) const {
    return here.total() + (shared_ ? there.total() : 0);
  }

  std::vector<autograd::unit_layout> const& units_;
  workload const& w_;
  bool shared_;  ///< device and host share one memory
  std::size_t device_, host_;
};

}  // namespace superoffload::offload
