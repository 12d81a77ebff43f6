// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/buffer.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/zero/buffer_sizes.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace superoffload::zero {

/// Device buffers that units take turns in. A unit is prefetched into one on a separate stream, and stays
/// until its buffer is needed for another. The unit that was left longest ago goes first, so around the turn
/// from forward to backward the last units are still there.
///
/// The order of streams keeps this correct: a buffer is filled after all work that was queued before its
/// former unit was released, and used after its fill. Fewer buffers cost time and change no result.
///
/// Calls come from the thread that queues the work. Only drop() waits for the device.
template <device_policy D>
class prefetcher {
public:
  using stream_type = typename D::stream;  ///< of compute and of fills

  /// `compute`: the stream whose work uses the units. `times` records the fills; it may be null.
  prefetcher(D& device, stream_type& compute, buffer_sizes<std::size_t> const& sizes,
             recorder<D>* times = nullptr)
      : sizes_{sizes},
        times_{sizes.buffers() == 0 ? nullptr : times},
        track_{times_ == nullptr ? -1 : times_->add_track(resource::link_up, "weights ahead of use")},
        compute_{&compute},
        transfer_{urgent_stream(device)},
        memory_{device, sizes.total()} {
    auto* next = memory_.template as<std::byte>();
    for (int i = 0; i < sizes.buffers(); ++i) {
      buffers_.emplace_back(std::exchange(next, next + sizes.of(i)), typename D::event{device},
                            typename D::event{device});
    }
  }
  prefetcher(prefetcher const&) = delete;
  prefetcher& operator=(prefetcher const&) = delete;
  ~prefetcher() { drain(transfer_); }

  /// The stream of all fills.
  [[nodiscard]] stream_type& transfer() noexcept { return transfer_; }

  /// Calls `fill(stream, buffer)` to queue the copy of the unit into a buffer for `bytes` bytes, unless the
  /// unit is in one. \returns false if all such buffers are in use.
  template <class Fill>
  bool fetch(int unit, std::size_t bytes, Fill const& fill) {
    if (find(unit) != nullptr) {
      return true;
    }
    prefetch_buffer* oldest = nullptr;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      auto& r = buffers_[i];
      if (r.users == 0 && sizes_.suits(static_cast<int>(i), bytes) &&
          (oldest == nullptr || r.touched < oldest->touched)) {
        oldest = &r;
      }
    }
    if (oldest == nullptr) {
      return false;
    }
    oldest->unit = no_unit;
    if (oldest->was_used) {
      transfer_.wait(oldest->left);
    }
    record_span(times_, track_, transfer_, "weights of ", unit, [&] { fill(transfer_, oldest->memory); });
    transfer_.record(oldest->filled);
    oldest->unit = unit;
    oldest->touched = ++clock_;
    return true;
  }

  /// The unit's buffer. Work queued on the compute stream from now on may read it. Nests.
  template <class Fill>
  void* acquire(int unit, std::size_t bytes, Fill const& fill) {
    expect(fetch(unit, bytes, fill), exit_code::internal, "unit ", unit, " was acquired while of all ",
           buffers_.size(), " buffers for units those for ", bytes,
           " bytes were in use: expected a buffer for each that is used at once");
    auto& r = *find(unit);
    if (r.users++ == 0) {
      compute_->wait(r.filled);
    }
    return r.memory;
  }
  /// Matches an acquire: work queued until now may still read the buffer.
  void release(int unit) noexcept {
    auto& r = *find(unit);
    if (--r.users > 0) {
      return;
    }
    r.touched = ++clock_;
    r.was_used = true;
    try {
      compute_->record(r.left);
    } catch (...) {}  // a device that failed says so at the next call
  }

  /// The fetched copy of the unit is out of date. The unit must not be in use.
  void forget(int unit) {
    if (auto* const r = find(unit)) {
      expect(r->users == 0, exit_code::internal, "unit ", unit, " changes while it is acquired");
      r->unit = no_unit;
      r->touched = 0;
    }
  }
  /// The same, after a wait for fills under way: nothing reads the unit's source then.
  void drop(int unit) {
    transfer_.synchronize();
    forget(unit);
  }

private:
  static constexpr int no_unit = -1;

  struct prefetch_buffer {
    prefetch_buffer(std::byte* where, typename D::event f, typename D::event l)
        : memory{where}, filled{std::move(f)}, left{std::move(l)} {}
    std::byte* memory;
    typename D::event filled, left;
    int unit = no_unit;
    int users = 0;
    bool was_used = false;     // `left` was recorded
    std::int64_t touched = 0;  // time of its last fill or release
  };

  prefetch_buffer* find(int unit) noexcept {
    for (auto& r : buffers_) {
      if (r.unit == unit) {
        return &r;
      }
    }
    return nullptr;
  }

  buffer_sizes<std::size_t> sizes_;
  recorder<D>* times_;
  int track_;
  stream_type* compute_;
  stream_type transfer_;
  buffer<D> memory_;
  std::vector<prefetch_buffer> buffers_;
  std::int64_t clock_ = 0;
};

}  // namespace superoffload::zero
