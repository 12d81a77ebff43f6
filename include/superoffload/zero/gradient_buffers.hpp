// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/buffer.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace superoffload::zero {

/// Rooms in device memory that gradients take turns in: one is written, others leave. A final gradient leaves
/// when its reader has it, which the sink says. Where micro-batches are added up, the sum so far goes home to
/// pinned host memory after each and comes back ahead of the next one, so that it is added to on the device,
/// with the bits of a sum that stays there.
///
/// The order of streams keeps it right: a buffer is given away behind whatever was queued for what was in it.
/// Fewer buffers cost waiting, never a result, down to one for each gradient that is written at once.
///
/// Calls come from the thread that queues the work. It waits where the sink's `taken` does.
template <device_policy D>
class gradient_buffers {
public:
  using stream_type = typename D::stream;
  using sink_type = gradient_sink<stream_type>;

  /// `compute`: the stream whose work writes gradients. `sums`: by unit, the bytes of its sum in host memory;
  /// 0 where it has none. `times` sees how sums come and go, if it is given.
  gradient_buffers(D& device, stream_type& compute, std::size_t buffer_bytes, int buffers,
                   std::vector<std::size_t> const& sums, sink_type sink, recorder<D>* times = nullptr)
      : compute_{&compute},
        sink_{sink},
        memory_{device, buffer_bytes * static_cast<std::size_t>(buffers)},
        homes_{device, std::accumulate(sums.begin(), sums.end(), std::size_t{0}), memory::host} {
    auto* next = memory_.template as<std::byte>();
    for (int i = 0; i < buffers; ++i) {
      buffers_.emplace_back(std::exchange(next, next + buffer_bytes), typename D::event{device});
    }
    auto* home = homes_.template as<std::byte>();
    for (auto const bytes : sums) {
      sums_.emplace_back(std::exchange(home, home + bytes), bytes, typename D::event{device});
    }
    if (homes_.bytes() > 0) {
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

  /// The unit's room, which work queued on the compute stream from now on may write, with the sum of the
  /// step's earlier micro-batches in it. The same until to_host() or finish().
  void* acquire(int unit) { return acquire(unit, *compute_); }
  /// The same for work on another stream, which the compute stream waits for before finish().
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
    expect(r != nullptr, exit_code::internal, "the gradient of unit ", unit, " finds all ", buffers_.size(),
           " buffers taken by gradients that are not final: expected a room for each");
    r->holds = content::growing;
    return r->memory;
  }

  /// Its micro-batch is done, and not the last one of the step: sends the sum home.
  void to_host(int unit) {
    auto& r = *find(unit);
    auto& s = sums_[at(unit)];
    compute_->record(r.settled);
    down_->wait(r.settled);
    record_span(times_, down_track_, *down_, "sum of ", unit,
                [&] { down_->copy(s.home, r.memory, s.bytes); });
    down_->record(r.settled);
    down_->record(s.sent);
    s.begun = true;
    leave(r, content::sent);
  }
  /// It is final: tells the sink of it.
  void finish(int unit, unit_gradient gradient) {
    auto& r = *find(unit);
    sink_.ready(sink_.self, unit, gradient);
    compute_->record(r.settled);  // the sink may have queued readers
    sums_[at(unit)].begun = false;
    leave(r, content::final);
  }

  /// A hint that the unit is acquired next.
  void expect_next(int unit) noexcept { next_ = unit; }
  /// Begins to bring the sum of what was expected, where there is one and a room for it.
  void bring_next() {
    auto const unit = std::exchange(next_, nobody);
    if (unit != nobody && sums_[at(unit)].begun) {
      bring(unit);
    }
  }

  /// What is in a buffer of the unit's gradient; null where it has made room for another.
  [[nodiscard]] void* memory_of(int unit) const {
    auto const found = std::find_if(buffers_.begin(), buffers_.end(), [&](gradient_buffer const& r) {
      return r.unit == unit && (r.holds == content::growing || r.holds == content::final);
    });
    return found == buffers_.end() ? nullptr : found->memory;
  }

private:
  static constexpr int nobody = -1;

  enum class content {
    nothing,
    growing,  // written by queued work, or about to be
    sent,     // also at home, when what is queued has run
    brought,  // the same, and not used yet
    final,    // the sink was told of it
  };
  struct gradient_buffer {
    gradient_buffer(std::byte* where, typename D::event s) : memory{where}, settled{std::move(s)} {}
    std::byte* memory;
    typename D::event settled;  // what was queued for its content has run; not of one that is growing
    int unit = nobody;
    content holds = content::nothing;
    std::int64_t left = 0;  // when it was, in the order of the calls
  };
  struct sum {
    sum(std::byte* where, std::size_t size, typename D::event s)
        : home{where}, bytes{size}, sent{std::move(s)} {}
    std::byte* home;
    std::size_t bytes;
    typename D::event sent;  // it is at home
    bool begun = false;      // earlier micro-batches of the step are in it
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

  /// A buffer that work queued on `stream` from now on may write: the unit's own, else the one that was left
  /// longest ago, before all one whose sum has been brought in vain. Null: all are growing.
  gradient_buffer* take(int unit, stream_type& stream) {
    auto* r = find(unit);
    if (r == nullptr) {
      for (auto& other : buffers_) {
        bool const in_vain = other.holds == content::brought;
        if (other.holds != content::growing &&
            (r == nullptr || in_vain || (r->holds != content::brought && other.left < r->left))) {
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

  /// The buffer that the unit's sum is in, or on its way to. Null: all are growing.
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
    record_span(times_, up_track_, *up_, "sum of ", unit, [&] { up_->copy(r->memory, s.home, s.bytes); });
    up_->record(r->settled);
    r->holds = content::brought;
    return r;
  }

  recorder<D>* times_ = nullptr;
  int down_track_ = -1, up_track_ = -1;
  stream_type* compute_;
  sink_type sink_;
  buffer<D> memory_, homes_;
  std::vector<gradient_buffer> buffers_;
  std::vector<sum> sums_;                 // by unit
  std::optional<stream_type> down_, up_;  // where there are sums
  int next_ = nobody;
  std::int64_t clock_ = 0;
};

}  // namespace superoffload::zero
