// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/buffer.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/zero/buffer_sizes.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace superoffload::zero {

/// Device buffers that offloaded gradients take turns in. A final gradient may be overwritten when its reader
/// has it, which the sink says. With several micro-batches, the sum goes to pinned host memory after each and
/// comes back before the next. It is added to on the device, so its bits are those of a sum that stays there.
///
/// The order of streams keeps this correct: a buffer's next use is queued after all work on its content.
/// Fewer buffers cost time and change no result. The minimum is one for each gradient that is written at
/// once.
///
/// Calls come from the thread that queues the work. They block only if the sink's `taken` does.
template <device_policy D>
class gradient_buffers {
public:
  using stream_type = typename D::stream;        ///< whose work writes, copies and reads gradients
  using sink_type = gradient_sink<stream_type>;  ///< whom finish() hands gradients to

  /// `compute`: the stream whose work writes gradients. `bytes`: by unit, those of its gradient; 0: it is not
  /// offloaded. `adds_up`: are there several micro-batches, whose sums live in host memory? `times` records
  /// the copies of sums; it may be null.
  gradient_buffers(D& device, stream_type& compute, buffer_sizes<std::size_t> const& sizes,
                   std::vector<std::size_t> const& bytes, bool adds_up, sink_type sink,
                   recorder<D>* times = nullptr)
      : sizes_{sizes},
        compute_{&compute},
        sink_{sink},
        memory_{device, sizes.total()},
        host_sums_{device, adds_up ? std::accumulate(bytes.begin(), bytes.end(), std::size_t{0}) : 0,
                   memory::host} {
    auto* next = memory_.template as<std::byte>();
    for (int i = 0; i < sizes.buffers(); ++i) {
      buffers_.emplace_back(std::exchange(next, next + sizes.of(i)), typename D::event{device});
    }
    auto* on_host = host_sums_.template as<std::byte>();
    for (auto const of_unit : bytes) {
      sums_.emplace_back(std::exchange(on_host, on_host + (adds_up ? of_unit : 0)), of_unit,
                         typename D::event{device});
    }
    if (host_sums_.bytes() > 0) {
      down_.emplace(device);
      up_.emplace(device);
      if (times != nullptr) {
        times_ = times;
        down_track_ = times->add_track(resource::link_down, "sums to host");
        up_track_ = times->add_track(resource::link_up, "sums ahead of use");
      }
    }
  }
  gradient_buffers(gradient_buffers const&) = delete;
  gradient_buffers& operator=(gradient_buffers const&) = delete;
  ~gradient_buffers() {
    if (down_) {
      drain(*down_);
      drain(*up_);
    }
  }

  /// The unit's buffer, with the sum of the step's earlier micro-batches in it. Work queued on the compute
  /// stream from now on may write it. The same buffer until to_host() or finish().
  void* acquire(int unit) { return acquire(unit, *compute_); }
  /// The same for work on `writer`. The compute stream must wait for that work before finish().
  void* acquire(int unit, stream_type& writer) {
    auto* r = find(unit);
    if (r != nullptr && r->holds == content::growing) {
      return r->memory;
    }
    if (sums_[at(unit)].begun) {
      r = bring(unit);
      if (r != nullptr) {
        writer.wait(r->settled);
      }
    } else {
      r = take(unit, writer);
    }
    expect(r != nullptr, exit_code::internal, "the gradient of unit ", unit, " finds of all ",
           buffers_.size(), " buffers those for ", sums_[at(unit)].bytes,
           " bytes taken by gradients that are not final: expected a buffer for each");
    r->holds = content::growing;
    return r->memory;
  }

  /// The unit's backward of a micro-batch is queued, and it is not the step's last: sends the sum to the
  /// host.
  void to_host(int unit) {
    auto& r = *find(unit);
    auto& s = sums_[at(unit)];
    compute_->record(r.settled);
    down_->wait(r.settled);
    record_span(times_, down_track_, *down_, "sum of ", unit,
                [&] { down_->copy(s.on_host, r.memory, s.bytes); });
    down_->record(r.settled);
    down_->record(s.sent);
    s.begun = true;
    leave(r, content::sent);
  }
  /// The gradient is final: hands it to the sink.
  void finish(int unit, unit_gradient gradient) {
    auto& r = *find(unit);
    sink_.ready(sink_.self, unit, gradient);
    compute_->record(r.settled);  // after readers that the sink has queued
    sums_[at(unit)].begun = false;
    leave(r, content::final);
  }

  /// A hint that the unit will be acquired next.
  void expect_next(int unit) noexcept { next_ = unit; }
  /// Begins to copy the expected unit's sum to the device, if it has one and a buffer is free.
  void bring_next() {
    auto const unit = std::exchange(next_, no_unit);
    if (unit != no_unit && sums_[at(unit)].begun) {
      bring(unit);
    }
  }

  /// The buffer with the unit's gradient; null if another gradient has taken it.
  [[nodiscard]] void* memory_of(int unit) const {
    auto const found = std::find_if(buffers_.begin(), buffers_.end(), [&](gradient_buffer const& r) {
      return r.unit == unit && (r.holds == content::growing || r.holds == content::final);
    });
    return found == buffers_.end() ? nullptr : found->memory;
  }

private:
  static constexpr int no_unit = -1;

  enum class content {
    nothing,
    growing,  // being written by queued work
    sent,     // a copy of the sum on the host, when queued work has run
    brought,  // the same, copied from the host and not used yet
    final,    // handed to the sink
  };
  struct gradient_buffer {
    gradient_buffer(std::byte* where, typename D::event s) : memory{where}, settled{std::move(s)} {}
    std::byte* memory;
    typename D::event settled;  // work queued for its content has run; not while it is growing
    int unit = no_unit;
    content holds = content::nothing;
    std::int64_t left = 0;  // time of its last to_host(), finish()
  };
  struct sum {  // of a unit
    sum(std::byte* where, std::size_t size, typename D::event s)
        : on_host{where}, bytes{size}, sent{std::move(s)} {}
    std::byte* on_host;
    std::size_t bytes;
    typename D::event sent;  // the copy to the host has ended
    bool begun = false;      // it has earlier micro-batches of the step
  };

  static std::size_t at(int unit) { return static_cast<std::size_t>(unit); }
  gradient_buffer* find(int unit) {
    auto const found = std::find_if(buffers_.begin(), buffers_.end(),
                                    [&](gradient_buffer const& r) { return r.unit == unit; });
    return found == buffers_.end() ? nullptr : &*found;
  }
  void leave(gradient_buffer& r, content now) {
    r.holds = now;
    r.left = ++clock_;
  }

  /// A buffer of its size that work queued on `stream` from now on may write: the unit's own; else one whose
  /// sum was copied back and not used; else the one left longest ago. Null: all are growing.
  gradient_buffer* take(int unit, stream_type& stream) {
    auto* r = find(unit);
    if (r == nullptr) {
      for (std::size_t i = 0; i < buffers_.size(); ++i) {
        auto& other = buffers_[i];
        bool const unused = other.holds == content::brought;
        if (other.holds != content::growing && sizes_.suits(static_cast<int>(i), sums_[at(unit)].bytes) &&
            (r == nullptr || unused || (r->holds != content::brought && other.left < r->left))) {
          r = &other;
        }
      }
    }
    if (r == nullptr) {
      return nullptr;
    }
    if (r->holds != content::nothing) {
      stream.wait(r->settled);
    }
    if (r->holds == content::final) {
      sink_.taken(sink_.self, r->unit, stream);
    }
    r->unit = unit;
    return r;
  }

  /// The buffer with the unit's sum, or with the copy of it under way. Null: all are growing.
  gradient_buffer* bring(int unit) {
    auto* r = find(unit);
    if (r != nullptr && r->holds != content::final) {
      return r;
    }
    r = take(unit, *up_);
    if (r == nullptr) {
      return nullptr;
    }
    auto& s = sums_[at(unit)];
    up_->wait(s.sent);
    record_span(times_, up_track_, *up_, "sum of ", unit, [&] { up_->copy(r->memory, s.on_host, s.bytes); });
    up_->record(r->settled);
    r->holds = content::brought;
    return r;
  }

  buffer_sizes<std::size_t> sizes_;
  recorder<D>* times_ = nullptr;
  int down_track_ = -1, up_track_ = -1;
  stream_type* compute_;
  sink_type sink_;
  buffer<D> memory_, host_sums_;
  std::vector<gradient_buffer> buffers_;
  std::vector<sum> sums_;                 // by unit
  std::optional<stream_type> down_, up_;  // if there are sums
  int next_ = no_unit;
  std::int64_t clock_ = 0;
};

}  // namespace superoffload::zero
