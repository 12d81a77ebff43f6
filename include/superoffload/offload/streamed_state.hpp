// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/offload/arrangement.hpp>
#include <superoffload/offload/segments.hpp>
#include <superoffload/offload/split_master.hpp>
#include <superoffload/offload/step_record.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace superoffload::offload {

/// Optimizer state that lives in pinned host memory and is updated by the device as it streams through: m, v
/// and the low half of the master (bfloat16), beside the working weight on the device. A weight that lives in
/// host memory streams along.
///
/// Uploads, updates and writing back are queued on streams of their own and wait for each other there; who
/// queues them never blocks on the device.
template <device_policy D, element T>
class streamed_state {
  static constexpr std::size_t bytes_of_element =
      2 * sizeof(float) + (splits_master<T> ? sizeof(std::uint16_t) : 0);

public:
  static std::size_t host_bytes(placement const& buckets) {
    std::size_t total = 0;
    for (auto const& b : buckets) {
      total += b.where == place::streamed ? static_cast<std::size_t>(b.count) * bytes_of_element : 0;
    }
    return total;
  }
  static std::size_t device_bytes(arrangement const& a) {
    return staging_bytes(a) * static_cast<std::size_t>(a.stagings);
  }

  /// `weights(unit)` gives a unit's working weights, [elements] T in device memory, or in host memory where
  /// they flow.
  template <class Weights>
  streamed_state(D& device, std::vector<autograd::unit_layout> const& units, arrangement const& a,
                 Weights&& weights, recorder<D>* times = nullptr)
      : times_{host_bytes(a.buckets) == 0 ? nullptr : times},
        up_{device},
        update_{device},
        down_{device},
        memory_{device, host_bytes(a.buckets), memory::host},
        staging_memory_{device, device_bytes(a)} {
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
      if (b.where != place::streamed) {
        continue;
      }
      p.bucket = b;
      p.segments = segments_of(units[static_cast<std::size_t>(b.unit)], b);
      p.weights = weights(b.unit) + b.offset;
      p.host = std::exchange(state, state + bytes_of(b));
      p.flows = a.flows(b);
      p.updated = std::make_unique<typename D::event>(device);
      p.returned = std::make_unique<typename D::event>(device);
    }
    auto* room = staging_memory_.template as<std::byte>();
    for (int i = 0; i < a.stagings && staging_memory_.bytes() > 0; ++i) {
      stagings_.push_back({.memory = room,
                           .uploaded = std::make_unique<typename D::event>(device),
                           .written = std::make_unique<typename D::event>(device)});
      room += staging_bytes(a);
    }
  }

  streamed_state(streamed_state const&) = delete;
  streamed_state& operator=(streamed_state const&) = delete;
  ~streamed_state() {
    drain(up_);
    drain(update_);
    drain(down_);
  }

  /// Queues the upload of a bucket's state into the next staging, unless it is on its way already. At most as
  /// many buckets as there are stagings may be uploaded and not yet updated.
  void upload(std::size_t index) {
    auto& p = pieces_[index];
    if (p.staging >= 0) {
      return;
    }
    p.staging = next_;
    auto& s = stagings_[static_cast<std::size_t>(next_)];
    next_ = (next_ + 1) % static_cast<int>(stagings_.size());
    expect(s.holds < 0, exit_code::internal, "a staging was taken before its bucket was updated");
    s.holds = static_cast<std::int64_t>(index);
    ++held_;
    // In its own stream's order, the bucket's last writing back is behind this staging's or an earlier one's.
    if (s.in_use) {
      up_.wait(*s.written);
    }
    if (p.written != nullptr) {
      up_.wait(*p.written);
    }
    record_span(times_, up_track_, up_, "state of ", p.bucket.unit, [&] {
      up_.copy(s.memory, p.host, bytes_of(p.bucket));
      if (p.flows) {
        up_.copy(s.memory + bytes_of(p.bucket), p.weights, weight_bytes_of(p.bucket));
      }
    });
    up_.record(*s.uploaded);
    uploads_.push_back(s.uploaded.get());
  }
  [[nodiscard]] bool uploaded(std::size_t index) const { return pieces_[index].staging >= 0; }
  /// Uploads, and writings back, that are not done. Each copy engine does what is ready in the order in which
  /// it became so: what is queued here keeps the link's other users waiting.
  [[nodiscard]] std::size_t uploads_under_way() { return under_way(uploads_); }
  [[nodiscard]] std::size_t writes_under_way() { return under_way(writes_); }
  /// Do buckets that wait for their update have all stagings?
  [[nodiscard]] bool full() const noexcept { return held_ == stagings_.size(); }
  /// The end of the oldest writing back, of those under way.
  [[nodiscard]] typename D::event const& next_written() const { return *writes_.front(); }
  [[nodiscard]] std::size_t stagings() const noexcept { return stagings_.size(); }

  /// Queues the update of an uploaded bucket and its writing back. From the point `is_final` on the gradient
  /// of its unit is, and nobody reads the old weights any more.
  void update(std::size_t index, step_record const& record, zero::unit_gradient gradient,
              typename D::event const& is_final) {
    auto& p = pieces_[index];
    auto& s = stagings_[static_cast<std::size_t>(p.staging)];
    auto const count = p.bucket.count;
    auto* const m = reinterpret_cast<float*>(s.memory);
    auto* const v = m + count;
    auto* const low = splits_master<T> ? reinterpret_cast<std::uint16_t*>(v + count) : nullptr;
    auto* const weights = p.flows ? reinterpret_cast<T*>(s.memory + bytes_of(p.bucket)) : p.weights;
    update_.wait(*s.uploaded);
    update_.wait(is_final);
    record_span(times_, update_track_, update_, "update of ", p.bucket.unit, [&] {
      for (auto const& part : p.segments) {
        if (part.trainable) {
          auto const at = part.offset;
          gradient.with_type<T>([&]<class G>(G const* g) {
            launch(update_,
                   kernel::adamw<T, G>{weights + at, low == nullptr ? nullptr : low + at, m + at, v + at,
                                       g + p.bucket.offset + at, part.count, record.numbers(part.decays)});
          });
        }
      }
    });
    update_.record(*p.updated);
    down_.wait(*p.updated);
    record_span(times_, down_track_, down_, "state of ", p.bucket.unit, [&] {
      if (p.flows) {
        down_.copy(p.weights, s.memory + bytes_of(p.bucket), weight_bytes_of(p.bucket));
        down_.record(*p.returned);
      }
      down_.copy(p.host, s.memory, bytes_of(p.bucket));
    });
    down_.record(*s.written);
    writes_.push_back(s.written.get());
    p.written = s.written.get();
    p.ever_updated = true;
    p.staging = -1;
    s.holds = -1;
    --held_;
    s.in_use = true;
  }
  /// Lets `stream` wait until the bucket's weights are where they live, after their last update.
  void await(std::size_t index, typename D::stream& stream) {
    auto const& p = pieces_[index];
    if (p.ever_updated) {
      stream.wait(p.flows ? *p.returned : *p.updated);
    }
  }
  /// Lets `stream` wait until the gradient of the last update has been read.
  void await_gradient(std::size_t index, typename D::stream& stream) {
    if (pieces_[index].ever_updated) {
      stream.wait(*pieces_[index].updated);
    }
  }
  /// Waits until everything queued is done and the host's memory is what counts.
  void synchronize() {
    up_.synchronize();
    update_.synchronize();
    down_.synchronize();
    uploads_.clear();
    writes_.clear();
    for (auto& s : stagings_) {
      if (s.holds >= 0) {
        pieces_[static_cast<std::size_t>(s.holds)].staging = -1;
        s.holds = -1;
        --held_;
      }
    }
  }

  /// Elements [first, first + size) of the bucket at `index`, after synchronize().
  void read(std::size_t index, state_part part, std::int64_t first, std::span<float> to) {
    auto const& p = pieces_[index];
    if (part == state_part::master) {
      read_masters(up_, p.weights + first, low_of(p, first), to);
    } else {
      std::memcpy(to.data(), moment(p, part) + first, to.size_bytes());
    }
  }
  void write(std::size_t index, state_part part, std::int64_t first, std::span<float const> from) {
    auto const& p = pieces_[index];
    if (part == state_part::master) {
      write_masters(up_, p.weights + first, low_of(p, first), from);
    } else {
      std::memcpy(moment(p, part) + first, from.data(), from.size_bytes());
    }
  }

private:
  struct piece {
    offload::bucket bucket;
    std::vector<segment> segments;
    T* weights = nullptr;
    bool flows = false;                                    // they live in host memory
    std::byte* host = nullptr;                             // m, v, low
    std::unique_ptr<typename D::event> updated, returned;  // the latter of weights that flow
    typename D::event const* written = nullptr;
    bool ever_updated = false;
    int staging = -1;
  };
  struct staging {
    std::byte* memory;
    std::unique_ptr<typename D::event> uploaded, written;
    std::int64_t holds = -1;  // a bucket between its upload and its update
    bool in_use = false;      // `written` was recorded
  };

  static std::size_t under_way(std::deque<typename D::event const*>& ends) {
    while (!ends.empty() && ends.front()->done()) { ends.pop_front(); }
    return ends.size();
  }
  /// Of the largest streamed bucket: its state, and its weights where they flow.
  static std::size_t staging_bytes(arrangement const& a) {
    std::size_t most = 0;
    for (auto const& b : a.buckets) {
      if (b.where == place::streamed) {
        most = std::max(most, bytes_of(b) + (a.flows(b) ? weight_bytes_of(b) : 0));
      }
    }
    return most;
  }
  static std::size_t weight_bytes_of(offload::bucket const& b) {
    return static_cast<std::size_t>(b.count) * sizeof(T);
  }
  static std::size_t bytes_of(offload::bucket const& b) {
    return static_cast<std::size_t>(b.count) * bytes_of_element;
  }
  static float* moment(piece const& p, state_part part) {
    return reinterpret_cast<float*>(p.host) + (part == state_part::m ? 0 : p.bucket.count);
  }
  static std::uint16_t* low_of(piece const& p, std::int64_t first) {
    if constexpr (splits_master<T>) {
      return reinterpret_cast<std::uint16_t*>(p.host +
                                              2 * sizeof(float) * static_cast<std::size_t>(p.bucket.count)) +
             first;
    } else {
      return nullptr;
    }
  }

  recorder<D>* times_;  // null also where nothing is streamed
  int up_track_ = -1, update_track_ = -1, down_track_ = -1;
  typename D::stream up_, update_, down_;
  buffer<D> memory_, staging_memory_;
  std::vector<piece> pieces_;  // one for each bucket, empty where it lives elsewhere
  std::vector<staging> stagings_;
  std::size_t held_ = 0;
  std::deque<typename D::event const*> uploads_, writes_;  // their ends, in order
  int next_ = 0;
};

}  // namespace superoffload::offload
