// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/described_device.hpp>
#include <superoffload/offload/configuration.hpp>
#include <superoffload/offload/offload_policy.hpp>
#include <superoffload/offload/state/gradient_norm.hpp>
#include <superoffload/offload/state/resident.hpp>
#include <superoffload/offload/state/step_record.hpp>
#include <superoffload/offload/state/worker.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::offload {

/// Optimizer state in any mixture of memory tiers. Every mixture gives the bits of the simple path
/// (none.hpp).
template <device_policy D, element T>
class placed_state {
public:
  /// Bytes of all state and its buffers, and of the partial sums of the norm.
  static memory_bytes bytes(std::vector<autograd::unit_layout> const& units, configuration const& a) {
    auto const norm = gradient_norm<D, T>::bytes(units);
    return worker<D, T>::bytes(a) +
           memory_bytes{resident_state<D, T>::bytes(a.buckets, a.format) + norm, norm};
  }

  /// `weights(unit)` gives a unit's working weights, [elements] T in device memory, or in host memory if they
  /// are offloaded. `times` records the state's streams and threads; it may be null.
  template <class Weights>
  placed_state(D& device, typename D::stream& stream, std::vector<autograd::unit_layout> const& units,
               configuration const& a, Weights&& weights, recorder<D>* times = nullptr)
      : buckets_{checked(a, units).buckets},
        immediate_{a.immediate},
        waits_for_all_{a.waits_for_all},
        compute_{&stream},
        units_{static_cast<int>(units.size())},
        norm_{device, stream, units},
        resident_{device, stream, units, buckets_, a.format, weights, times},
        worker_{device, stream, units, a, weights, times} {}

  /// The record of the coming step, if it is not clipped.
  void announce(step_record const& record) {
    at_once_ = immediate_ ? std::optional{record} : std::nullopt;
    worker_.announce(record);
  }
  /// The unit's gradient is final.
  void ready(int unit, zero::unit_gradient gradient) {
    norm_.add(unit, gradient);
    worker_.ready(unit, gradient);
    if (at_once_) {
      resident_.update(unit, *at_once_, gradient);
    }
  }
  /// Waits for every gradient: gradient_norm::check_gradient.
  [[nodiscard]] gradient_check check_gradient(int ranks = 1, gather_sums const& gather = {}) {
    return norm_.check_gradient(ranks, gather);
  }
  /// Updates everything: resident state by work queued now, the rest in the background.
  void update(step_record const& record) {
    worker_.conclude(record);
    if (!std::exchange(at_once_, std::nullopt)) {
      for (int unit = 0; unit < units_; ++unit) { resident_.update(unit, record, norm_.gradient(unit)); }
    }
    if (waits_for_all_) {
      for (int unit = 0; unit < units_; ++unit) { worker_.await(unit, *compute_); }
    }
  }
  /// The step changes nothing.
  void skip() {
    at_once_.reset();
    worker_.conclude(std::nullopt);
  }
  /// The working weights of a unit may be used where they live by work queued on `stream` from now on.
  void await(int unit, typename D::stream& stream) { worker_.await(unit, stream); }
  /// Would await(unit) return at once?
  [[nodiscard]] bool returned(int unit) const { return worker_.returned(unit); }
  /// The last gradient of a unit may be overwritten by work queued on `stream` from now on, if that also
  /// waits for what ready() queued on the compute stream.
  void await_gradient(int unit, typename D::stream& stream) { worker_.await_gradient(unit, stream); }
  /// Commits all pending state. Between steps only.
  void flush() { worker_.flush(); }

  /// Of the buckets off the device, since the beginning.
  [[nodiscard]] worker_counts counts() const { return worker_.counts(); }
  /// An estimate of the share of steps with clip factor 1, as a moving average over steps.
  [[nodiscard]] double hit_rate() const { return worker_.hit_rate(); }
  /// The threads of CPU Adam; null if no bucket is on the host.
  [[nodiscard]] adam_workers* workers() const noexcept { return worker_.workers(); }
  /// What the host refused to CPU Adam's threads.
  [[nodiscard]] std::vector<std::string> notes() const {
    auto const* const threads = workers();
    return threads != nullptr ? threads->notes() : std::vector<std::string>{};
  }

  /// Reads elements [first, first + size) of a trainable unit's state. Flushes, and waits for the stream.
  void read(int unit, state_part part, std::int64_t first, std::span<float> to) {
    flush();
    each_piece(unit, first, to, [&](std::size_t index, std::int64_t at, std::span<float> piece) {
      if (buckets_[index].where == tier::resident) {
        resident_.read(index, part, at, piece);
      } else {
        worker_.read(index, part, at, piece);
      }
    });
  }
  /// Writes them. A written master also sets its working weight.
  void write(int unit, state_part part, std::int64_t first, std::span<float const> from) {
    flush();
    each_piece(unit, first, from, [&](std::size_t index, std::int64_t at, std::span<float const> piece) {
      if (buckets_[index].where == tier::resident) {
        resident_.write(index, part, at, piece);
      } else {
        worker_.write(index, part, at, piece);
      }
    });
  }

private:
  /// Before anything is allocated or queued.
  static configuration const& checked(configuration const& a,
                                      std::vector<autograd::unit_layout> const& units) {
    check(a);
    expect_covers(a.buckets, units);
    return a;
  }

  template <class Span, class Piece>
  void each_piece(int unit, std::int64_t first, Span all, Piece&& piece) {
    auto const last = first + static_cast<std::int64_t>(all.size());
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      auto const& b = buckets_[i];
      auto const begin = std::max(first, b.offset);
      auto const end = std::min(last, b.offset + b.count);
      if (b.unit == unit && begin < end) {
        piece(i, begin - b.offset,
              all.subspan(static_cast<std::size_t>(begin - first), static_cast<std::size_t>(end - begin)));
      }
    }
  }

  placement buckets_;
  bool immediate_, waits_for_all_;
  std::optional<step_record> at_once_;  // the step's, if buckets are updated as their gradients come
  typename D::stream* compute_;
  int units_;
  gradient_norm<D, T> norm_;
  resident_state<D, T> resident_;
  worker<D, T> worker_;
};

/// The policy: state is offloaded as engine_options::configuration says.
struct super {
  using policy_category = category::offload;  ///< makes it an offload_policy
  static constexpr bool configures = true;    ///< engine_options::configuration counts
  template <device_policy D, element T>
  using state = placed_state<D, T>;  ///< an optimizer_state
};
static_assert(offload_policy<super, described_device, bfloat16>);

}  // namespace superoffload::offload
