// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/cpu/threads.hpp>
#include <superoffload/kernel/deferred_adamw.hpp>
#include <superoffload/offload/placement.hpp>
#include <superoffload/offload/segments.hpp>
#include <superoffload/offload/step_record.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace superoffload::offload {

/// Optimizer state in host memory: master, m and v in fp32, updated by CPU Adam. Gradients and weights are
/// buffers of a whole bucket. Calls return when the work is done; one at a time.
template <device_policy D, element T>
class host_state {
public:
  /// Bytes of host memory for those of `buckets` whose place is the host.
  static std::size_t bytes(placement const& buckets) {
    std::size_t total = 0;
    for (auto const& b : buckets) {
      total += b.where == place::host ? 3 * static_cast<std::size_t>(b.count) * sizeof(float) : 0;
    }
    return total;
  }

  host_state(D& device, std::vector<autograd::unit_layout> const& units, placement const& buckets,
             cpu::thread_pool& workers)
      : workers_{&workers}, memory_{device, bytes(buckets), memory::host} {
    auto* state = memory_.template as<float>();
    for (auto const& b : buckets) {
      auto& p = pieces_.emplace_back();
      if (b.where != place::host) {
        continue;
      }
      p.segments = segments_of(units[static_cast<std::size_t>(b.unit)], b);
      p.master = std::exchange(state, state + b.count);
      p.m = std::exchange(state, state + b.count);
      p.v = std::exchange(state, state + b.count);
      // The threads that will work on a slice touch it first.
      workers_->parallel_for(b.count, slice, [&](std::int64_t begin, std::int64_t end) {
        for (auto* part : {p.master, p.m, p.v}) { std::fill(part + begin, part + end, 0.0F); }
      });
    }
  }

  /// A step with its true factor; the new weights take the gradient's place.
  void update(std::size_t index, step_record const& record, T* gradient) {
    each_segment(index, gradient, [&](piece const& p, segment const& s) {
      auto const at = s.offset;
      run(kernel::adamw_update<T>{p.master + at, p.m + at, p.v + at, gradient + at, gradient + at, s.count,
                                  record.numbers(s.decays)});
    });
  }
  /// The weights that a step would give; the state stays.
  void emit(std::size_t index, step_record const& record, T const* gradient, T* weights) {
    each_segment(index, weights, [&](piece const& p, segment const& s) {
      auto const at = s.offset;
      run(kernel::adamw_emit<T>{p.master + at, p.m + at, p.v + at, gradient + at, weights + at, s.count,
                                record.numbers(s.decays)});
    });
  }
  /// The state of a step that was emitted.
  void commit(std::size_t index, step_record const& pending, T const* kept) {
    auto const& p = pieces_[index];
    for (auto const& s : p.segments) {
      if (s.trainable) {
        auto const at = s.offset;
        run(kernel::adamw_commit<T>{p.master + at, p.m + at, p.v + at, kept + at, s.count,
                                    pending.numbers(s.decays)});
      }
    }
  }
  /// Both; the weights take the place of the pending step's gradient.
  void commit_emit(std::size_t index, step_record const& pending, T* kept, step_record const& record,
                   T const* gradient) {
    each_segment(index, kept, [&](piece const& p, segment const& s) {
      auto const at = s.offset;
      run(kernel::adamw_commit_emit<T>{p.master + at, p.m + at, p.v + at, kept + at, gradient + at, kept + at,
                                       s.count, pending.numbers(s.decays), record.numbers(s.decays)});
    });
  }
  /// A pending step and one with its true factor; the weights take the place of the latter's gradient.
  void commit_update(std::size_t index, step_record const& pending, T const* kept, step_record const& record,
                     T* gradient) {
    each_segment(index, gradient, [&](piece const& p, segment const& s) {
      auto const at = s.offset;
      run(kernel::adamw_commit_update<T>{p.master + at, p.m + at, p.v + at, kept + at, gradient + at,
                                         gradient + at, s.count, pending.numbers(s.decays),
                                         record.numbers(s.decays)});
    });
  }
  /// The weights of the state as it is.
  void weights(std::size_t index, T* to) {
    for (auto const& s : pieces_[index].segments) { plain_weights(pieces_[index], s, to); }
  }

  /// Elements [first, first + size) of the bucket at `index`.
  void read(std::size_t index, state_part part, std::int64_t first, std::span<float> to) const {
    auto const* const from = at(index, part) + first;
    std::copy(from, from + to.size(), to.begin());
  }
  void write(std::size_t index, state_part part, std::int64_t first, std::span<float const> from) {
    std::copy(from.begin(), from.end(), at(index, part) + first);
  }

private:
  /// Elements that one call of a kernel covers: pieces of it stay with one thread.
  static constexpr std::int64_t slice = std::int64_t{1} << 16;

  struct piece {
    std::vector<segment> segments;
    float* master = nullptr;
    float* m = nullptr;
    float* v = nullptr;
  };

  template <class Update>
  void each_segment(std::size_t index, T* weights, Update&& update) {
    auto const& p = pieces_[index];
    for (auto const& s : p.segments) {
      if (s.trainable) {
        update(p, s);
      } else {
        plain_weights(p, s, weights);
      }
    }
  }
  void plain_weights(piece const& p, segment const& s, T* to) {
    run(kernel::emit_weights<T>{p.master + s.offset, to + s.offset, s.count});
  }
  template <class Arguments>
  void run(Arguments const& all) {
    workers_->parallel_for(all.count, slice, [&](std::int64_t begin, std::int64_t end) {
      cpu::run(all.slice(begin, end - begin));
    });
  }
  [[nodiscard]] float* at(std::size_t index, state_part part) const {
    auto const& p = pieces_[index];
    return part == state_part::master ? p.master : part == state_part::m ? p.m : p.v;
  }

  cpu::thread_pool* workers_;
  buffer<D> memory_;
  std::vector<piece> pieces_;  // one for each bucket, empty where it lives elsewhere
};

}  // namespace superoffload::offload
