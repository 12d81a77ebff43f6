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

/// Rooms in device memory that units take turns in. A unit is brought into one ahead of its use, by a stream
/// of its own, and stays until its room is needed for another: the unit that was left longest ago goes first,
/// so that around the turn from forward to backward the last ones are still there.
///
/// The order of streams keeps it right: a buffer is filled behind all work that was queued before its former
/// unit was released, and used behind its filling. Fewer buffers cost waiting, never a result.
///
/// Calls come from the thread that queues the work. None of them waits for the device but drop().
template <device_policy D>
class prefetcher {
public:
  using stream_type = typename D::stream;

  /// `compute`: the stream whose work uses the units. `times` sees what fills the buffers, if it is given.
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

  /// The stream that `fill` is called with.
  [[nodiscard]] stream_type& transfer() noexcept { return transfer_; }

  /// Lets `fill(stream, room)` queue what brings the unit into a room for so many bytes, unless it is in one.
  /// False: all such buffers are in use.
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
    oldest->unit = nobody;
    if (oldest->was_used) {
      transfer_.wait(oldest->left);
    }
    record_span(times_, track_, transfer_, "weights of ", unit, [&] { fill(transfer_, oldest->memory); });
    transfer_.record(oldest->filled);
    oldest->unit = unit;
    oldest->touched = ++clock_;
    return true;
  }

  /// The unit's room, which work queued on the compute stream from now on may read. Nests.
  template <class Fill>
  void* acquire(int unit, std::size_t bytes, Fill const& fill) {
    expect(fetch(unit, bytes, fill), exit_code::internal, "unit ", unit, " was acquired while of all ",
           buffers_.size(), " buffers for units those for ", bytes,
           " bytes were in use: expected a room for each that is used at once");
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

  /// What was fetched of the unit is out of date. It is not in use.
  void forget(int unit) {
    if (auto* const r = find(unit)) {
      expect(r->users == 0, exit_code::internal, "unit ", unit, " changes while it is acquired");
      r->unit = nobody;
      r->touched = 0;
    }
  }
  /// The same, and nothing reads its source any more: waits for what is on its way.
  void drop(int unit) {
    transfer_.synchronize();
    forget(unit);
  }

private:
  static constexpr int nobody = -1;

  struct prefetch_buffer {
    prefetch_buffer(std::byte* where, typename D::event f, typename D::event l)
        : memory{where}, filled{std::move(f)}, left{std::move(l)} {}
    std::byte* memory;
    typename D::event filled, left;
    int unit = nobody;
    int users = 0;
    bool was_used = false;     // `left` was recorded
    std::int64_t touched = 0;  // when it was filled or left
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
