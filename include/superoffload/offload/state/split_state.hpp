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
#include <superoffload/offload/state/state_arrays.hpp>
#include <superoffload/offload/state/state_bytes.hpp>
#include <superoffload/offload/state/step_record.hpp>

#include <cstddef>
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
      : workers_{workers},
        format_{a.format},
        memory_{adam_workers::memory(workers, device.host_account(), bytes(a))} {
    state_layout const layout{format_, sizeof(T)};
    auto* state = memory_.template as<std::byte>();
    for (auto const& b : a.buckets) {
      auto& p = pieces_.emplace_back();
      if (!keeps(a, b)) {
        continue;
      }
      auto const& unit = units[static_cast<std::size_t>(b.unit)];
      p.segments = segments_of(unit, b, format_);
      p.unit = b.unit;
      p.begin = unit.begin() + b.offset;
      p.weights = weights(b.unit) + b.offset;
      p.count = b.count;
      p.state = std::exchange(state, state + layout.split(b.count));
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
      with_split_arrays<T>(format_, p.state, p.count, [&](auto const& of) {
        of.each(p.count,
                [&](auto* array, std::int64_t count) { threads.fill_zero(array, count, sizeof(*array)); });
      });
    }
    threads.synchronize();
  }

  /// A step with its true factor. No other thread or copy may read the weights meanwhile.
  void update(std::size_t index, step_record const& record, T const* gradient) {
    auto const& p = pieces_[index];
    with_split_arrays<T>(format_, p.state, p.count, [&]<state_format F>(split_arrays<T, F> const& of) {
      workers_->each_piece(p.count, p.segments, [&](segment const& s) {
        if (s.trainable) {
          auto const at = s.offset;
          cpu::run(kernel::adamw<T, T, F>{p.weights + at, of.low_at(at), of.m + at, of.v + at, gradient + at,
                                          s.count, record.numbers(p.unit, s.decays), p.begin + at});
        }
      });
    });
  }

  /// Reads elements [first, first + size) of the bucket at `index`.
  void read(std::size_t index, state_part part, std::int64_t first, std::span<float> to) const {
    auto const& p = pieces_[index];
    with_split_arrays<T>(format_, p.state, p.count, [&]<state_format F>(split_arrays<T, F> const& of) {
      if (part != state_part::master) {
        read_moment<F>(of.moment(part), part, first, to);
        return;
      }
      for (std::size_t i = 0; i < to.size(); ++i) {
        auto const at = first + static_cast<std::int64_t>(i);
        if constexpr (splits_master<T>) {
          to[i] = master_of(p.weights[at], of.low[at]);
        } else {
          to[i] = p.weights[at];
        }
      }
    });
  }
  /// Writes them. A written master also sets its working weight, which must not be read meanwhile.
  void write(std::size_t index, state_part part, std::int64_t first, std::span<float const> from) {
    auto const& p = pieces_[index];
    with_split_arrays<T>(format_, p.state, p.count, [&]<state_format F>(split_arrays<T, F> const& of) {
      if (part != state_part::master) {
        write_moment<F>(of.moment(part), part, first, from);
        return;
      }
      for (std::size_t i = 0; i < from.size(); ++i) {
        auto const at = first + static_cast<std::int64_t>(i);
        if constexpr (splits_master<T>) {
          split(from[i], p.weights[at], of.low[at]);
        } else {
          p.weights[at] = from[i];
        }
      }
    });
  }

private:
  struct piece {
    std::vector<segment> segments;
    int unit = 0;
    std::int64_t begin = 0;  // its first element's index in the unit
    std::int64_t count = 0;
    T* weights = nullptr;
    std::byte* state = nullptr;
  };

  adam_workers* workers_;
  state_format format_;
  cpu::state_memory memory_;
  std::vector<piece> pieces_;  // by bucket; empty if not kept here
};

}  // namespace superoffload::offload
