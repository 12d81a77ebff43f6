// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/offload/configuration.hpp>
#include <superoffload/offload/state/device_arrays.hpp>
#include <superoffload/offload/state/link_streams.hpp>
#include <superoffload/offload/state/segments.hpp>
#include <superoffload/offload/state/state_arrays.hpp>
#include <superoffload/offload/state/state_bytes.hpp>
#include <superoffload/offload/state/step_record.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace superoffload::offload {

/// Optimizer state in pinned host memory that is streamed to the device and updated there: m, v and the low
/// bits of the master (bfloat16). The working weight is on the device, or is streamed with the state if it
/// lives in host memory.
///
/// A bucket is uploaded into a free staging buffer, updated there, and written back, which frees the buffer.
/// staging_schedule decides the order. Uploads and write-backs share the link's streams with other copies:
/// they are queued a few at a time, when they do not have to wait. Queuing never blocks on the device.
template <device_policy D, element T>
class device_updated_state {
public:
  /// Bytes of staging buffers, and of state on the host.
  static memory_bytes bytes(configuration const& a) {
    auto const of_state = bytes_of(a, sizeof(T));
    return {.device = of_state.staging_buffer * static_cast<std::size_t>(a.staging_buffers),
            .host = of_state.device_updated};
  }

  /// `weights(unit)` gives a unit's working weights, [elements] T in device memory, or in host memory if they
  /// are offloaded. `link` must outlive it.
  template <class Weights>
  device_updated_state(D& device, link_streams<D>& link, std::vector<autograd::unit_layout> const& units,
                       configuration const& a, Weights&& weights, recorder<D>* times = nullptr)
      : format_{a.format},
        times_{bytes(a).host == 0 ? nullptr : times},
        link_{&link},
        update_{device},
        memory_{device, bytes(a).host, memory::host},
        staging_memory_{device, bytes(a).device} {
    if (memory_.bytes() > 0) {
      std::memset(memory_.data(), 0, memory_.bytes());
    }
    if (times_ != nullptr) {
      up_track_ = times_->add_track(resource::link_up, "state to device");
      update_track_ = times_->add_track(resource::device_adam, "device Adam, streamed");
      down_track_ = times_->add_track(resource::link_down, "state to host");
    }
    auto* state = memory_.template as<std::byte>();
    for (auto const& b : a.buckets) {
      auto& p = pieces_.emplace_back();
      if (b.where != tier::device_updated) {
        continue;
      }
      p.bucket = b;
      auto const& unit = units[static_cast<std::size_t>(b.unit)];
      p.segments = segments_of(unit, b, format_);
      p.begin = unit.begin() + b.offset;
      p.weights = weights(b.unit) + b.offset;
      p.host = std::exchange(state, state + state_bytes_of(b));
      p.offloaded = a.weights_offloaded(b);
      p.updated = std::make_unique<typename D::event>(device);
      p.returned = std::make_unique<typename D::event>(device);
    }
    auto* memory = staging_memory_.template as<std::byte>();
    for (int i = 0; i < a.staging_buffers && staging_memory_.bytes() > 0; ++i) {
      staging_buffers_.push_back({.memory = memory,
                                  .uploaded = std::make_unique<typename D::event>(device),
                                  .written = std::make_unique<typename D::event>(device)});
      free_.push_back(i);
      memory += bytes_of(a, sizeof(T)).staging_buffer;
    }
  }

  device_updated_state(device_updated_state const&) = delete;
  device_updated_state& operator=(device_updated_state const&) = delete;
  ~device_updated_state() {
    drain(link_->up);
    drain(update_);
    drain(link_->down);
  }

  /// Are fewer uploads under way than `most`?
  [[nodiscard]] bool may_upload(std::size_t most) {
    while (!uploads_.empty() && uploads_.front()->done()) { uploads_.pop_front(); }
    return uploads_.size() < most;
  }
  /// Queues the upload of a bucket's state to a free staging buffer. All of the state is on the host.
  void upload(std::size_t index) {
    auto& p = pieces_[index];
    p.staging = free_.back();
    free_.pop_back();
    auto& s = staging_buffer_of(p);
    auto& up = link_->up;
    record_span(times_, up_track_, up, "state of ", p.bucket.unit, [&] {
      up.copy(s.memory, p.host, state_bytes_of(p.bucket));
      if (p.offloaded) {
        up.copy(s.memory + state_bytes_of(p.bucket), p.weights, weight_bytes_of(p.bucket));
      }
    });
    up.record(*s.uploaded);
    uploads_.push_back(s.uploaded.get());
  }

  /// Queues the update of an uploaded bucket. From the event `is_final` on, its unit's gradient is final and
  /// no kernel reads the old weights.
  void update(std::size_t index, step_record const& record, zero::unit_gradient gradient,
              typename D::event const& is_final) {
    auto& p = pieces_[index];
    auto& s = staging_buffer_of(p);
    auto* const weights = p.offloaded ? reinterpret_cast<T*>(s.memory + state_bytes_of(p.bucket)) : p.weights;
    update_.wait(*s.uploaded);
    update_.wait(is_final);
    record_span(times_, update_track_, update_, "update of ", p.bucket.unit, [&] {
      with_split_arrays<T>(
          format_, s.memory, p.bucket.count, [&]<state_format F>(split_arrays<T, F> const& of) {
            for (auto const& part : p.segments) {
              if (part.trainable) {
                auto const at = part.offset;
                gradient.with_type<T>([&]<class G>(G const* g) {
                  launch(update_,
                         kernel::adamw<T, G, F>{weights + at, of.low_at(at), of.m + at, of.v + at,
                                                g + p.bucket.offset + at, part.count,
                                                record.numbers(p.bucket.unit, part.decays), p.begin + at});
                });
              }
            }
          });
    });
    update_.record(*p.updated);
    p.is_written = false;
    p.ever_updated = true;
    updated_.push_back(index);
  }

  /// Queues the write-back of updated buckets whose update is done, in the order of updates. \returns whether
  /// there were any.
  bool write_back(std::size_t most_under_way) {
    bool any = false;
    while (!updated_.empty() && writes_.size() < most_under_way &&
           pieces_[updated_.front()].updated->done()) {
      write_next();
      any = true;
    }
    return any;
  }
  /// Takes the oldest write-back, if it is done, and frees its staging buffer.
  [[nodiscard]] std::optional<std::size_t> take_written() {
    if (writes_.empty() || !staging_buffer_of(pieces_[writes_.front()]).written->done()) {
      return std::nullopt;
    }
    auto const index = writes_.front();
    writes_.pop_front();
    free_.push_back(pieces_[index].staging);
    return index;
  }
  /// Is the write-back of every update queued?
  [[nodiscard]] bool wrote_all() const noexcept { return updated_.empty(); }
  /// May await() be called? Not before the write-back of offloaded weights is queued.
  [[nodiscard]] bool returns(std::size_t index) const {
    return !pieces_[index].offloaded || pieces_[index].is_written;
  }
  /// If may_upload() or write_back() refused, or no staging buffer was free: the event that must end first.
  /// It may have ended by now. Null: nothing is under way.
  [[nodiscard]] typename D::event const* next_end() {
    if (!writes_.empty()) {
      return staging_buffer_of(pieces_[writes_.front()]).written.get();
    }
    if (!updated_.empty()) {
      return pieces_[updated_.front()].updated.get();
    }
    return uploads_.empty() ? nullptr : uploads_.front();
  }

  /// Lets `stream` wait until the bucket's weights of the last update are where they live.
  void await(std::size_t index, typename D::stream& stream) {
    auto const& p = pieces_[index];
    if (p.ever_updated) {
      stream.wait(p.offloaded ? *p.returned : *p.updated);
    }
  }
  /// Lets `stream` wait until the gradient of the last update has been read.
  void await_gradient(std::size_t index, typename D::stream& stream) {
    if (pieces_[index].ever_updated) {
      stream.wait(*pieces_[index].updated);
    }
  }
  /// Waits for all queued work. Host memory holds all state then; nothing may be left to write back.
  void synchronize() {
    link_->up.synchronize();
    update_.synchronize();
    link_->down.synchronize();
    uploads_.clear();
    writes_.clear();
    free_.clear();
    for (std::size_t i = 0; i < staging_buffers_.size(); ++i) { free_.push_back(static_cast<int>(i)); }
  }

  /// Reads elements [first, first + size) of the bucket at `index`, after synchronize().
  void read(std::size_t index, state_part part, std::int64_t first, std::span<float> to) {
    auto const& p = pieces_[index];
    with_split_arrays<T>(format_, p.host, p.bucket.count, [&]<state_format F>(split_arrays<T, F> const& of) {
      if (part == state_part::master) {
        read_masters(link_->up, p.weights + first, of.low_at(first), to);
      } else {
        read_moment<F>(of.moment(part), part, first, to);
      }
    });
  }
  /// Writes them, after synchronize(). A written master also sets its working weight.
  void write(std::size_t index, state_part part, std::int64_t first, std::span<float const> from) {
    auto const& p = pieces_[index];
    with_split_arrays<T>(format_, p.host, p.bucket.count, [&]<state_format F>(split_arrays<T, F> const& of) {
      if (part == state_part::master) {
        write_masters(link_->up, p.weights + first, of.low_at(first), from);
      } else {
        write_moment<F>(of.moment(part), part, first, from);
      }
    });
  }

private:
  struct piece {
    offload::bucket bucket;
    std::vector<segment> segments;
    T* weights = nullptr;
    std::int64_t begin = 0;                                // its first element's index in the unit
    bool offloaded = false;                                // the weights live in host memory
    std::byte* host = nullptr;                             // its split_arrays
    std::unique_ptr<typename D::event> updated, returned;  // `returned`: of offloaded weights
    bool ever_updated = false;
    bool is_written = true;  // the write-back of the last update is queued
    int staging = 0;         // its staging buffer, while its state is not on the host
  };
  struct staging_buffer {
    std::byte* memory;
    std::unique_ptr<typename D::event> uploaded, written;
  };

  staging_buffer& staging_buffer_of(piece const& p) {
    return staging_buffers_[static_cast<std::size_t>(p.staging)];
  }
  /// Writes back the oldest updated bucket, whose update is done.
  void write_next() {
    auto& p = pieces_[updated_.front()];
    auto& s = staging_buffer_of(p);
    auto& down = link_->down;
    record_span(times_, down_track_, down, "state of ", p.bucket.unit, [&] {
      if (p.offloaded) {
        down.copy(p.weights, s.memory + state_bytes_of(p.bucket), weight_bytes_of(p.bucket));
        down.record(*p.returned);
      }
      down.copy(p.host, s.memory, state_bytes_of(p.bucket));
    });
    down.record(*s.written);
    p.is_written = true;
    writes_.push_back(updated_.front());
    updated_.pop_front();
  }
  static std::size_t weight_bytes_of(offload::bucket const& b) {
    return static_cast<std::size_t>(b.count) * sizeof(T);
  }
  [[nodiscard]] std::size_t state_bytes_of(offload::bucket const& b) const {
    return state_layout{format_, sizeof(T)}.split(b.count);
  }

  state_format format_;
  recorder<D>* times_;  // null also if no bucket is device-updated
  int up_track_ = -1, update_track_ = -1, down_track_ = -1;
  link_streams<D>* link_;
  typename D::stream update_;
  buffer<D> memory_, staging_memory_;
  std::vector<piece> pieces_;  // by bucket; empty in other tiers
  std::vector<staging_buffer> staging_buffers_;
  std::vector<int> free_;
  std::deque<typename D::event const*> uploads_;  // ends of the uploads under way, in order
  std::deque<std::size_t> updated_, writes_;      // buckets to be written back, and those under way
};

}  // namespace superoffload::offload
