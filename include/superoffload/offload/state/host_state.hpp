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
#include <superoffload/offload/state/state_arrays.hpp>
#include <superoffload/offload/state/state_bytes.hpp>
#include <superoffload/offload/state/step_record.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace superoffload::offload {

/// Whole optimizer state in host memory: master, m and v, updated by CPU Adam. Each thread prefers its own
/// slice of a bucket, which it touched first. Gradients and weights are buffers of a whole bucket. Of a
/// double-buffered configuration there are two copies of the state, and calls say which one is current: 0
/// or 1. Calls return when the work is done; one call at a time. After an exception in a thread, every later
/// call throws it again.
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
      : workers_{workers},
        format_{a.format},
        copies_{a.double_buffered ? 2 : 1},
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
      p.count = b.count;
      for (int copy = 0; copy < copies_; ++copy) {
        p.state[static_cast<std::size_t>(copy)] = std::exchange(state, state + layout.whole(b.count));
      }
    }
    if (workers_ == nullptr) {
      return;
    }
    auto& threads = workers_->threads();
    drain_at_end const drained{threads};
    for (auto const& p : pieces_) {  // first touch: memory comes from the node of the thread that works on it
      for (int copy = 0; copy < copies_ && p.count > 0; ++copy) {
        with_arrays(p, copy, [&]<state_format F>(whole_arrays<T, F> const& of) {
          of.each(p.count,
                  [&](auto* array, std::int64_t count) { threads.fill_zero(array, count, sizeof(*array)); });
        });
      }
    }
    threads.synchronize();
  }

  /// A step with its true factor. The new weights overwrite the gradient.
  void update(std::size_t index, int current, step_record const& record, T* gradient) {
    each_piece(index, current, gradient,
               [=]<state_format F>(piece const& p, arrays<F> const& of, segment const& s) {
                 auto const at = s.offset;
                 cpu::run(kernel::adamw_update<T, F>{of.master + at, of.m + at, of.v + at, gradient + at,
                                                     gradient + at, s.count, record.numbers(p.unit, s.decays),
                                                     p.begin + at});
               });
  }
  /// Makes the weights that a step would give; the state stays.
  void speculate(std::size_t index, step_record const& record, T const* gradient, T* weights) {
    each_piece(index, 0, weights, [=]<state_format F>(piece const& p, arrays<F> const& of, segment const& s) {
      auto const at = s.offset;
      cpu::run(kernel::adamw_speculate<T, F>{of.master + at, of.m + at, of.v + at, gradient + at,
                                             weights + at, s.count, record.numbers(p.unit, s.decays),
                                             p.begin + at});
    });
  }
  /// Makes the state and the weights that a step would give. The other copy of the state gets the former; the
  /// current one stays.
  void write_next(std::size_t index, int current, step_record const& record, T const* gradient, T* weights) {
    each_piece(
        index, current, weights, [=]<state_format F>(piece const& p, arrays<F> const& of, segment const& s) {
          auto const at = s.offset;
          auto const next = arrays<F>::at(p.state[static_cast<std::size_t>(1 - current)], p.count);
          cpu::run(kernel::adamw_next_state<T, F>{of.master + at, of.m + at, of.v + at, gradient + at,
                                                  next.master + at, next.m + at, next.v + at, weights + at,
                                                  s.count, record.numbers(p.unit, s.decays), p.begin + at});
        });
  }
  /// Writes the state of a confirmed speculative update.
  void commit(std::size_t index, step_record const& pending, T const* kept) {
    each_piece(index, 0, nullptr, [=]<state_format F>(piece const& p, arrays<F> const& of, segment const& s) {
      auto const at = s.offset;
      cpu::run(kernel::adamw_commit<T, F>{of.master + at, of.m + at, of.v + at, kept + at, s.count,
                                          pending.numbers(p.unit, s.decays), p.begin + at});
    });
  }
  /// commit() of the pending step and speculate() of this one. The weights overwrite the pending step's
  /// gradient.
  void commit_speculate(std::size_t index, step_record const& pending, T* kept, step_record const& record,
                        T const* gradient) {
    each_piece(index, 0, kept, [=]<state_format F>(piece const& p, arrays<F> const& of, segment const& s) {
      auto const at = s.offset;
      cpu::run(kernel::adamw_commit_speculate<T, F>{
          of.master + at, of.m + at, of.v + at, kept + at, gradient + at, kept + at, s.count,
          pending.numbers(p.unit, s.decays), record.numbers(p.unit, s.decays), p.begin + at});
    });
  }
  /// commit() of the pending step and update() of this one. The weights overwrite this step's gradient.
  void commit_update(std::size_t index, step_record const& pending, T const* kept, step_record const& record,
                     T* gradient) {
    each_piece(index, 0, gradient,
               [=]<state_format F>(piece const& p, arrays<F> const& of, segment const& s) {
                 auto const at = s.offset;
                 cpu::run(kernel::adamw_commit_update<T, F>{
                     of.master + at, of.m + at, of.v + at, kept + at, gradient + at, gradient + at, s.count,
                     pending.numbers(p.unit, s.decays), record.numbers(p.unit, s.decays), p.begin + at});
               });
  }
  /// Makes the weights of the state as it is.
  void weights(std::size_t index, int current, T* to) {
    on_threads(index, current, [=]<state_format F>(piece const&, arrays<F> const& of, segment const& s) {
      plain_weights(of, s, to);
    });
  }

  /// Reads elements [first, first + size) of the bucket at `index`.
  void read(std::size_t index, int current, state_part part, std::int64_t first, std::span<float> to) const {
    with_arrays(pieces_[index], current, [&]<state_format F>(arrays<F> const& of) {
      if (part == state_part::master) {
        read_masters(of.master, first, to);
      } else {
        read_moment<F>(of.moment(part), part, first, to);
      }
    });
  }
  /// Writes them, to all copies: updates leave out what is frozen. Working weights do not change: weights()
  /// makes the new ones.
  void write(std::size_t index, state_part part, std::int64_t first, std::span<float const> from) {
    for (int copy = 0; copy < copies_; ++copy) {
      with_arrays(pieces_[index], copy, [&]<state_format F>(arrays<F> const& of) {
        if (part == state_part::master) {
          write_masters(of.master, first, from);
        } else {
          write_moment<F>(of.moment(part), part, first, from);
        }
      });
    }
  }

private:
  template <state_format F>
  using arrays = whole_arrays<T, F>;

  struct piece {
    std::vector<segment> segments;
    int unit = 0;
    std::int64_t begin = 0;  // its first element's index in the unit
    std::int64_t count = 0;
    std::array<std::byte*, 2> state{};  // the copies
  };

  /// Calls work(arrays) with those of a copy of the piece.
  template <class Work>
  void with_arrays(piece const& p, int copy, Work const& work) const {
    with_format(format_, [&]<state_format F>() {
      work(arrays<F>::at(p.state[static_cast<std::size_t>(copy)], p.count));
    });
  }
  /// Calls update(piece, arrays, segment) for trainable segments. The others only write their weights, unless
  /// `weights` is null.
  template <class Update>
  void each_piece(std::size_t index, int current, T* weights, Update const& update) {
    on_threads(index, current,
               [&update, weights]<state_format F>(piece const& p, arrays<F> const& of, segment const& s) {
                 if (s.trainable) {
                   update(p, of, s);
                 } else if (weights != nullptr) {
                   plain_weights(of, s, weights);
                 }
               });
  }
  /// Calls work(piece, arrays, segment) on all threads.
  template <class Work>
  void on_threads(std::size_t index, int current, Work const& work) {
    auto const& p = pieces_[index];
    with_arrays(p, current, [&]<state_format F>(arrays<F> const& of) {
      workers_->each_piece(p.count, p.segments, [&](segment const& s) { work(p, of, s); });
    });
  }
  template <state_format F>
  static void plain_weights(arrays<F> const& of, segment const& s, T* to) {
    cpu::run(kernel::resend_weights<T, F>{of.master + s.offset, to + s.offset, s.count});
  }

  adam_workers* workers_;
  state_format format_;
  int copies_;
  cpu::state_memory memory_;
  std::vector<piece> pieces_;  // by bucket; empty if not kept here
};

}  // namespace superoffload::offload
