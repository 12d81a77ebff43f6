// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/cpu/state_memory.hpp>
#include <superoffload/kernel/deferred_adamw.hpp>
#include <superoffload/offload/configuration.hpp>
#include <superoffload/offload/state/adam_workers.hpp>
#include <superoffload/offload/state/segments.hpp>
#include <superoffload/offload/state/state_bytes.hpp>
#include <superoffload/offload/state/step_record.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace superoffload::offload {

/// Optimizer state in host memory: master, m and v in fp32, updated by CPU Adam. Each thread prefers its own
/// slice of a bucket, which it touched first. Gradients and weights are buffers of a whole bucket. Calls
/// return when the work is done; one call at a time. After an exception in a thread, every later call throws
/// it again.
template <device_policy D, element T>
class host_state {
public:
  /// Is the bucket's state kept here? Buckets whose weights live in host memory belong to split_state.
  static bool keeps(configuration const& a, bucket const& b) {
    return b.where == tier::host && !a.weights_offloaded(b);
  }
  /// Bytes of host memory.
  static std::size_t bytes(configuration const& a) { return bytes_of(a, sizeof(T)).whole; }

  /// `workers` may be null if no bucket is on the host.
  host_state(D& device, std::vector<autograd::unit_layout> const& units, configuration const& a,
             adam_workers* workers)
      : workers_{workers}, memory_{adam_workers::memory(workers, device.host_account(), bytes(a))} {
    auto* state = memory_.template as<float>();
    for (auto const& b : a.buckets) {
      auto& p = pieces_.emplace_back();
      if (!keeps(a, b)) {
        continue;
      }
      p.segments = segments_of(units[static_cast<std::size_t>(b.unit)], b);
      p.count = b.count;
      for (auto* part : {&p.master, &p.m, &p.v}) { *part = std::exchange(state, state + b.count); }
    }
    if (workers_ == nullptr) {
      return;
    }
    auto& threads = workers_->threads();
    drain_at_end const drained{threads};
    for (auto const& p : pieces_) {  // first touch: memory comes from the node of the thread that works on it
      for (auto* part : {p.master, p.m, p.v}) {
        if (p.count > 0) {
          threads.fill_zero(part, p.count, sizeof(float));
        }
      }
    }
    threads.synchronize();
  }

  /// A step with its true factor. The new weights overwrite the gradient.
  void update(std::size_t index, step_record const& record, T* gradient) {
    each_piece(index, gradient, [=](piece const& p, segment const& s) {
      auto const at = s.offset;
      cpu::run(kernel::adamw_update<T>{p.master + at, p.m + at, p.v + at, gradient + at, gradient + at,
                                       s.count, record.numbers(s.decays)});
    });
  }
  /// Makes the weights that a step would give; the state stays.
  void speculate(std::size_t index, step_record const& record, T const* gradient, T* weights) {
    each_piece(index, weights, [=](piece const& p, segment const& s) {
      auto const at = s.offset;
      cpu::run(kernel::adamw_speculate<T>{p.master + at, p.m + at, p.v + at, gradient + at, weights + at,
                                          s.count, record.numbers(s.decays)});
    });
  }
  /// Writes the state of a confirmed speculative update.
  void commit(std::size_t index, step_record const& pending, T const* kept) {
    each_piece(index, nullptr, [=](piece const& p, segment const& s) {
      auto const at = s.offset;
      cpu::run(kernel::adamw_commit<T>{p.master + at, p.m + at, p.v + at, kept + at, s.count,
                                       pending.numbers(s.decays)});
    });
  }
  /// commit() of the pending step and speculate() of this one. The weights overwrite the pending step's
  /// gradient.
  void commit_speculate(std::size_t index, step_record const& pending, T* kept, step_record const& record,
                        T const* gradient) {
    each_piece(index, kept, [=](piece const& p, segment const& s) {
      auto const at = s.offset;
      cpu::run(kernel::adamw_commit_speculate<T>{p.master + at, p.m + at, p.v + at, kept + at, gradient + at,
                                                 kept + at, s.count, pending.numbers(s.decays),
                                                 record.numbers(s.decays)});
    });
  }
  /// commit() of the pending step and update() of this one. The weights overwrite this step's gradient.
  void commit_update(std::size_t index, step_record const& pending, T const* kept, step_record const& record,
                     T* gradient) {
    each_piece(index, gradient, [=](piece const& p, segment const& s) {
      auto const at = s.offset;
      cpu::run(kernel::adamw_commit_update<T>{p.master + at, p.m + at, p.v + at, kept + at, gradient + at,
                                              gradient + at, s.count, pending.numbers(s.decays),
                                              record.numbers(s.decays)});
    });
  }
  /// Makes the weights of the state as it is.
  void weights(std::size_t index, T* to) {
    on_threads(index, [=](piece const& p, segment const& s) { plain_weights(p, s, to); });
  }

  /// Reads elements [first, first + size) of the bucket at `index`.
  void read(std::size_t index, state_part part, std::int64_t first, std::span<float> to) const {
    auto const* const from = at(index, part) + first;
    std::copy(from, from + to.size(), to.begin());
  }
  /// Writes them. Working weights do not change: weights() makes the new ones.
  void write(std::size_t index, state_part part, std::int64_t first, std::span<float const> from) {
    std::copy(from.begin(), from.end(), at(index, part) + first);
  }

private:
  struct piece {
    std::vector<segment> segments;
    std::int64_t count = 0;
    float* master = nullptr;
    float* m = nullptr;
    float* v = nullptr;
  };

  /// Calls update(piece, segment) for trainable segments. The others only write their weights, unless
  /// `weights` is null.
  template <class Update>
  void each_piece(std::size_t index, T* weights, Update const& update) {
    on_threads(index, [&update, weights](piece const& p, segment const& s) {
      if (s.trainable) {
        update(p, s);
      } else if (weights != nullptr) {
        plain_weights(p, s, weights);
      }
    });
  }
  /// Calls work(piece, segment) on all threads.
  template <class Work>
  void on_threads(std::size_t index, Work const& work) {
    auto const& p = pieces_[index];
    workers_->each_piece(p.count, p.segments, [&](segment const& s) { work(p, s); });
  }
  static void plain_weights(piece const& p, segment const& s, T* to) {
    cpu::run(kernel::resend_weights<T>{p.master + s.offset, to + s.offset, s.count});
  }
  [[nodiscard]] float* at(std::size_t index, state_part part) const {
    auto const& p = pieces_[index];
    return part == state_part::master ? p.master : part == state_part::m ? p.m : p.v;
  }

  adam_workers* workers_;
  cpu::state_memory memory_;
  std::vector<piece> pieces_;  // by bucket; empty if not kept here
};

}  // namespace superoffload::offload
