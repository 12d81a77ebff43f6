// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/offload/placement.hpp>
#include <superoffload/offload/state/device_arrays.hpp>
#include <superoffload/offload/state/segments.hpp>
#include <superoffload/offload/state/state_arrays.hpp>
#include <superoffload/offload/state/state_bytes.hpp>
#include <superoffload/offload/state/step_record.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace superoffload::offload {

/// Optimizer state in device memory beside the weights: m, v, and the part of the master that the working
/// weight does not hold (bfloat16: its low bits; float: nothing). The device updates it, all in
/// one stream.
template <device_policy D, element T>
class resident_state {
public:
  /// Bytes of device memory for the resident buckets among `buckets`.
  static std::size_t bytes(placement const& buckets, state_format format) {
    return bytes_of(buckets, {}, {format, sizeof(T)}).resident;
  }

  /// Keeps the state of the resident buckets among `buckets`. `weights(unit)` gives a unit's working weights,
  /// [elements] T in device memory.
  template <class Weights>
  resident_state(D& device, typename D::stream& stream, std::vector<autograd::unit_layout> const& units,
                 placement const& buckets, state_format format, Weights&& weights,
                 recorder<D>* times = nullptr)
      : times_{bytes(buckets, format) == 0 ? nullptr : times},
        track_{times_ == nullptr ? -1 : times_->add_track(resource::device_adam, "device Adam")},
        stream_{&stream},
        format_{format},
        state_{device, bytes(buckets, format)} {
    drain_at_end const drained{stream};
    stream.fill_zero(state_.data(), state_.bytes());
    for (auto const& b : buckets) {
      if (b.where != tier::resident) {
        places_.push_back({});
        continue;
      }
      if (!continues(b)) {
        pieces_.push_back({b, {}, weights(b.unit) + b.offset});
        pieces_.back().bucket.count = 0;
      }
      auto& p = pieces_.back();
      places_.push_back({pieces_.size() - 1, p.bucket.count});
      p.bucket.count += b.count;
    }
    state_layout const layout{format_, sizeof(T)};
    auto* state = state_.template as<std::byte>();
    for (auto& p : pieces_) {
      auto const& unit = units[static_cast<std::size_t>(p.bucket.unit)];
      p.segments = segments_of(unit, p.bucket, format_);
      p.begin = unit.begin() + p.bucket.offset;
      p.state = std::exchange(state, state + layout.split(p.bucket.count));
    }
  }

  /// Queues the update of a unit's resident buckets. The unit's gradient is final.
  void update(int unit, step_record const& record, zero::unit_gradient gradient) {
    for (auto const& p : pieces_) {
      if (p.bucket.unit == unit) {
        record_span(times_, track_, *stream_, "update of ", unit, [&] { update(p, record, gradient); });
      }
    }
  }

  /// Reads elements [first, first + size) of the resident bucket at `index`. Waits for the stream.
  void read(std::size_t index, state_part part, std::int64_t first, std::span<float> to) {
    auto const& p = pieces_[places_[index].piece];
    first += places_[index].offset;
    with_split_arrays<T>(format_, p.state, p.bucket.count, [&]<state_format F>(split_arrays<T, F> const& of) {
      if (part == state_part::master) {
        read_masters(*stream_, p.weights + first, of.low_at(first), to);
      } else {
        read_moment<F>(*stream_, of.moment(part), part, first, to);
      }
    });
  }
  /// Writes them. A written master also sets its working weight.
  void write(std::size_t index, state_part part, std::int64_t first, std::span<float const> from) {
    auto const& p = pieces_[places_[index].piece];
    first += places_[index].offset;
    with_split_arrays<T>(format_, p.state, p.bucket.count, [&]<state_format F>(split_arrays<T, F> const& of) {
      if (part == state_part::master) {
        write_masters(*stream_, p.weights + first, of.low_at(first), from);
      } else {
        write_moment<F>(*stream_, of.moment(part), part, first, from);
      }
    });
  }

private:
  /// Neighbouring buckets of a unit, updated by one launch: hundreds of short kernels would leave the device
  /// idle between them.
  struct piece {
    offload::bucket bucket;
    std::vector<segment> segments;
    T* weights = nullptr;
    std::int64_t begin = 0;  ///< its first element's index in the unit
    std::byte* state = nullptr;
  };
  struct place {
    std::size_t piece = 0;
    std::int64_t offset = 0;  ///< in elements from the start of the piece
  };
  /// Does `b` follow the last piece?
  [[nodiscard]] bool continues(offload::bucket const& b) const {
    return !pieces_.empty() && pieces_.back().bucket.unit == b.unit &&
           pieces_.back().bucket.offset + pieces_.back().bucket.count == b.offset;
  }
  void update(piece const& p, step_record const& record, zero::unit_gradient gradient) {
    with_split_arrays<T>(format_, p.state, p.bucket.count, [&]<state_format F>(split_arrays<T, F> const& of) {
      for (auto const& s : p.segments) {
        if (!s.trainable) {
          continue;
        }
        auto const at = s.offset;
        gradient.with_type<T>([&]<class G>(G const* g) {
          launch(*stream_, kernel::adamw<T, G, F>{p.weights + at, of.low_at(at), of.m + at, of.v + at,
                                                  g + p.bucket.offset + at, s.count,
                                                  record.numbers(p.bucket.unit, s.decays), p.begin + at});
        });
      }
    });
  }

  recorder<D>* times_;
  int track_;
  typename D::stream* stream_;
  state_format format_;
  buffer<D> state_;
  std::vector<piece> pieces_;
  std::vector<place> places_;  // by bucket; of no meaning if not resident
};

}  // namespace superoffload::offload
