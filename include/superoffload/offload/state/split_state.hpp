// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/cpu/state_memory.hpp>
#include <superoffload/kernel/adamw.hpp>
#include <superoffload/offload/configuration.hpp>
#include <superoffload/offload/state/adam_workers.hpp>
#include <superoffload/offload/state/segments.hpp>
#include <superoffload/offload/state/split_master.hpp>
#include <superoffload/offload/state/state_bytes.hpp>
#include <superoffload/offload/state/step_record.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace superoffload::offload {

/// Optimizer state in host memory beside working weights that live there, too: m, v, and the part of the
/// master that the weight does not hold (bfloat16: its low 16 bits; float: nothing). CPU Adam updates state
/// and weight in place, so there are no speculative updates. Calls return when the work is done; one call at
/// a time.
template <device_policy D, element T>
class split_state {
public:
  /// Is the bucket's state kept here?
  static bool keeps(configuration const& a, bucket const& b) {
    return b.where == tier::host && a.weights_offloaded(b);
  }
  /// Bytes of host memory, beside the weights.
  static std::size_t bytes(configuration const& a) { return bytes_of(a, sizeof(T)).in_place; }

  /// `workers` may be null if no bucket is on the host. `weights(unit)` gives a unit's working weights,
  /// [elements] T in host memory.
  template <class Weights>
  split_state(D& device, std::vector<autograd::unit_layout> const& units, configuration const& a,
              adam_workers* workers, Weights&& weights)
      : workers_{workers}, memory_{adam_workers::memory(workers, device.host_account(), bytes(a))} {
    auto const elements = static_cast<std::int64_t>(memory_.bytes() / split_state_bytes(sizeof(T)));
    auto* moment = memory_.template as<float>();
    auto* low = reinterpret_cast<std::uint16_t*>(moment + 2 * elements);
    for (auto const& b : a.buckets) {
      auto& p = pieces_.emplace_back();
      if (!keeps(a, b)) {
        continue;
      }
      p.segments = segments_of(units[static_cast<std::size_t>(b.unit)], b);
      p.weights = weights(b.unit) + b.offset;
      p.count = b.count;
      p.m = std::exchange(moment, moment + b.count);
      p.v = std::exchange(moment, moment + b.count);
      if constexpr (splits_master<T>) {
        p.low = std::exchange(low, low + b.count);
      }
    }
    if (workers_ == nullptr) {
      return;
    }
    auto& threads = workers_->threads();
    drain_at_end const drained{threads};
    for (auto const& p : pieces_) {  // first touch: memory comes from the node of the thread that works on it
      if (p.count == 0) {
        continue;
      }
      for (auto* part : {p.m, p.v}) { threads.fill_zero(part, p.count, sizeof(float)); }
      if constexpr (splits_master<T>) {
        threads.fill_zero(p.low, p.count, sizeof(std::uint16_t));
      }
    }
    threads.synchronize();
  }

  /// A step with its true factor. No other thread or copy may read the weights meanwhile.
  void update(std::size_t index, step_record const& record, T const* gradient) {
    auto const& p = pieces_[index];
    workers_->each_piece(p.count, p.segments, [&](segment const& s) {
      if (s.trainable) {
        auto const at = s.offset;
        cpu::run(kernel::adamw<T>{p.weights + at, p.low == nullptr ? nullptr : p.low + at, p.m + at, p.v + at,
                                  gradient + at, s.count, record.numbers(s.decays)});
      }
    });
  }

  /// Reads elements [first, first + size) of the bucket at `index`.
  void read(std::size_t index, state_part part, std::int64_t first, std::span<float> to) const {
    auto const& p = pieces_[index];
    if (part == state_part::master) {
      for (std::size_t i = 0; i < to.size(); ++i) {
        auto const at = first + static_cast<std::int64_t>(i);
        if constexpr (splits_master<T>) {
          to[i] = bfloat16::master_of(p.weights[at], p.low[at]);
        } else {
          to[i] = p.weights[at];
        }
      }
      return;
    }
    auto const* const from = moment(p, part) + first;
    std::copy(from, from + to.size(), to.begin());
  }
  /// Writes them. A written master also sets its working weight, which must not be read meanwhile.
  void write(std::size_t index, state_part part, std::int64_t first, std::span<float const> from) {
    auto const& p = pieces_[index];
    if (part == state_part::master) {
      for (std::size_t i = 0; i < from.size(); ++i) {
        auto const at = first + static_cast<std::int64_t>(i);
        if constexpr (splits_master<T>) {
          p.weights[at] = bfloat16::of_master(from[i]);
          p.low[at] = bfloat16::low_of_master(from[i]);
        } else {
          p.weights[at] = from[i];
        }
      }
      return;
    }
    std::copy(from.begin(), from.end(), moment(p, part) + first);
  }

private:
  struct piece {
    std::vector<segment> segments;
    std::int64_t count = 0;
    T* weights = nullptr;
    std::uint16_t* low = nullptr;
    float* m = nullptr;
    float* v = nullptr;
  };
  static float* moment(piece const& p, state_part part) { return part == state_part::m ? p.m : p.v; }

  adam_workers* workers_;
  cpu::state_memory memory_;
  std::vector<piece> pieces_;  // by bucket; empty if not kept here
};

}  // namespace superoffload::offload
