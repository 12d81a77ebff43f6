// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/buffer.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/function_ref.hpp>
#include <superoffload/cpu/topology.hpp>
#include <superoffload/offload/planning/least_seconds.hpp>
#include <superoffload/offload/planning/machine.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <optional>
#include <thread>

namespace superoffload::offload::detail {

/// Keeps one direction of the link busy, and counts what it copies.
template <device_policy D>
class busy_direction {
public:
  explicit busy_direction(D& device) : device_{&device} {}

  /// Queues copies as earlier ones end, since a stream takes a limited number.
  template <class Copy>
  void keep_up(typename D::stream& stream, Copy const& copy) {
    for (; !queued_.empty() && queued_.front().done(); queued_.pop_front()) {
      auto const now = clock::now();
      if (last_) {
        ++copies_;
        seconds_ += std::chrono::duration<double>(now - *last_).count();
      }
      last_ = now;
    }
    while (queued_.size() < at_once) {
      copy();
      stream.record(queued_.emplace_back(*device_));
    }
  }
  /// Waits for what is queued, which no longer counts.
  void pause(typename D::stream& stream) {
    stream.synchronize();
    queued_.clear();
    last_.reset();
  }
  /// Copies per second while it was kept busy; 0: none is known.
  [[nodiscard]] double per_second() const {
    return seconds_ > 0.0 ? static_cast<double>(copies_) / seconds_ : 0.0;
  }

private:
  static constexpr std::size_t at_once = 4;

  D* device_;
  std::deque<typename D::event> queued_;
  std::optional<clock::time_point> last_;  ///< when a copy ended
  std::int64_t copies_ = 0;
  double seconds_ = 0.0;
};

/// Copies whole buckets in both directions, each in its own stream. On the host, each direction has so many
/// buckets that they do not fit the caches, as in a run.
template <device_policy D>
class link_probe {
public:
  /// `bytes`: of a bucket; `most_buckets`: the buckets of a run.
  link_probe(D& device, std::size_t bytes, std::size_t most_buckets)
      : device_{&device},
        down_{device},
        up_{device},
        bytes_{bytes},
        buckets_{
            std::clamp<std::size_t>(2 * cached_bytes() / bytes, 1, std::max<std::size_t>(1, most_buckets))},
        on_device_{device, 2 * bytes},
        on_host_{device, 2 * buckets_ * bytes, memory::host} {
    drain_at_end const drained{down_};
    down_.fill_zero(on_device_.data(), on_device_.bytes());
    for (std::size_t i = 0; i < 2 * buckets_; ++i) {
      down_.copy(on_host_.template as<std::byte>() + i * bytes_, on_device_.data(), bytes_);
    }
    down_.synchronize();
  }
  ~link_probe() {
    drain(down_);
    drain(up_);
  }
  link_probe(link_probe const&) = delete;
  link_probe& operator=(link_probe const&) = delete;

  void measure(machine::link_part& link) {
    link.latency =
        least_seconds([&] { copy(down_, &link_probe::copy_down, small_copies, 1); }) / small_copies;
    double const all = static_cast<double>(bytes_) * copies;
    link.alone.down = all / least_seconds([&] { copy(down_, &link_probe::copy_down, copies, bytes_); });
    link.alone.up = all / least_seconds([&] { copy(up_, &link_probe::copy_up, copies, bytes_); });
    // The directions need not be equally fast, and the one that ends first would leave the other alone.
    busy_direction<D> down{*device_}, up{*device_};
    busy_during(&down, &up, [&] {
      std::this_thread::sleep_for(std::chrono::duration<double>{8.0 * all / link.alone.down});
    });
    link.both = {std::min(rate_of(down, link.alone.down), link.alone.down),
                 std::min(rate_of(up, link.alone.up), link.alone.up)};
  }
  /// Bytes per second, or `otherwise` if nothing is known.
  [[nodiscard]] double rate_of(busy_direction<D> const& direction, double otherwise) const {
    double const rate = direction.per_second() * static_cast<double>(bytes_);
    return rate > 0.0 ? rate : otherwise;
  }

  /// Keeps one direction or both (null: not this one) busy while work() runs in a thread of its own.
  void busy_during(busy_direction<D>* down, busy_direction<D>* up, function_ref<void()> work) {
    std::atomic<bool> ended = false;
    auto working = std::async(std::launch::async, [&] {
      struct end {
        std::atomic<bool>* of;
        ~end() { *of = true; }
      } const at_end{&ended};
      work();
    });
    while (!ended) {
      if (down != nullptr) {
        down->keep_up(down_, [this] { copy_down(bytes_); });
      }
      if (up != nullptr) {
        up->keep_up(up_, [this] { copy_up(bytes_); });
      }
      std::this_thread::sleep_for(std::chrono::microseconds{20});
    }
    if (down != nullptr) {
      down->pause(down_);
    }
    if (up != nullptr) {
      up->pause(up_);
    }
    working.get();
  }

private:
  static constexpr int copies = 4, small_copies = 32;

  static std::size_t cached_bytes() {
    return static_cast<std::size_t>(cpu::largest_cache_bytes(cpu::allowed_processors().front()));
  }
  void copy_down(std::size_t bytes) { down_.copy(next_on_host(next_down_, 0), on_device_.data(), bytes); }
  void copy_up(std::size_t bytes) {
    up_.copy(on_device_.template as<std::byte>() + bytes_, next_on_host(next_up_, buckets_), bytes);
  }
  std::byte* next_on_host(std::size_t& next, std::size_t first) {
    next = (next + 1) % buckets_;
    return on_host_.template as<std::byte>() + (first + next) * bytes_;
  }
  void copy(typename D::stream& stream, void (link_probe::*one)(std::size_t), int times, std::size_t bytes) {
    for (int i = 0; i < times; ++i) { (this->*one)(bytes); }
    stream.synchronize();
  }

  D* device_;
  typename D::stream down_, up_;
  std::size_t bytes_, buckets_, next_down_ = 0, next_up_ = 0;
  buffer<D> on_device_, on_host_;
};

}  // namespace superoffload::offload::detail
