// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/cpu/device.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

namespace superoffload::test {

/// The CPU as a device that refuses one allocation, with slow copies. It counts releases of memory while one
/// of its streams still works: each is a use after free.
class scarce_device : public cpu::device {
public:
  class stream : public cpu::stream {
  public:
    explicit stream(scarce_device& device) : cpu::stream{device}, device_{&device} {
      std::lock_guard const lock{device_->mutex_};
      device_->streams_.push_back(this);
    }
    ~stream() {
      std::lock_guard const lock{device_->mutex_};
      std::erase(device_->streams_, this);
    }
    void copy(void* to, void const* from, std::size_t bytes) {
      delay();
      cpu::stream::copy(to, from, bytes);
    }
    void fill_zero(void* to, std::size_t bytes) {
      delay();
      cpu::stream::fill_zero(to, bytes);
    }
    [[nodiscard]] bool idle() {
      cpu::event here;
      record(here);
      return here.done();
    }

  private:
    void delay() {
      enqueue([] { std::this_thread::sleep_for(std::chrono::microseconds{300}); });
    }
    scarce_device* device_;
  };

  /// Refuses the allocation after `allowed` others.
  explicit scarce_device(long allowed) : cpu::device{1}, left_{allowed} {}

  [[nodiscard]] void* allocate(std::size_t bytes) {
    take();
    return cpu::device::allocate(bytes);
  }
  [[nodiscard]] void* allocate_host(std::size_t bytes) {
    take();
    return cpu::device::allocate_host(bytes);
  }
  void release(void* memory, std::size_t bytes) noexcept {
    look();
    cpu::device::release(memory, bytes);
  }
  void release_host(void* memory, std::size_t bytes) noexcept {
    look();
    cpu::device::release_host(memory, bytes);
  }

  [[nodiscard]] int released_in_use() const noexcept { return released_in_use_; }
  [[nodiscard]] bool refused() const noexcept { return left_ < 0; }

private:
  void take() {
    if (left_-- == 0) {
      fail(exit_code::cannot_fit, "no memory is left");
    }
  }
  void look() noexcept {
    std::lock_guard const lock{mutex_};
    released_in_use_ += std::any_of(streams_.begin(), streams_.end(), [](auto* s) { return !s->idle(); });
  }

  std::mutex mutex_;
  std::vector<stream*> streams_;
  long left_;
  int released_in_use_ = 0;
};
static_assert(device_policy<scarce_device>);

/// Calls work(device) and refuses one allocation after the other, until none is refused. \returns the number
/// of refused allocations.
template <class Work, class Check>
int refuse_each_allocation(Work&& work, Check&& check) {
  for (int allowed = 0;; ++allowed) {
    scarce_device device{allowed};
    error thrown{exit_code::ok, ""};
    try {
      work(device);
    } catch (error const& e) { thrown = e; }
    check(device, thrown);
    if (!device.refused()) {
      return allowed;
    }
  }
}

}  // namespace superoffload::test
