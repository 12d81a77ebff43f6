// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/device.hpp>

#include <cstddef>
#include <utility>

namespace superoffload {

enum class memory { device, host };

/// Owns `bytes` of a device's memory, or of host memory that the device copies fast. Not initialised.
/// The destructor does not wait: before it runs, no stream may use the memory any more.
template <device_policy D>
class buffer {
public:
  buffer() = default;
  /// Allocates, unless `bytes` is 0. The device must outlive the buffer. \throws what its allocation throws
  buffer(D& device, std::size_t bytes, memory kind = memory::device)
      : device_{bytes == 0 ? nullptr : &device},
        bytes_{bytes},
        kind_{kind},
        data_{bytes == 0               ? nullptr
              : kind == memory::device ? device.allocate(bytes)
                                       : device.allocate_host(bytes)} {}
  /// @{
  /// Leaves `other` empty.
  buffer(buffer&& other) noexcept { swap(other); }
  buffer& operator=(buffer&& other) noexcept {
    buffer{std::move(other)}.swap(*this);
    return *this;
  }
  /// @}
  ~buffer() {
    if (device_ == nullptr) {
      return;
    }
    if (kind_ == memory::device) {
      device_->release(data_, bytes_);
    } else {
      device_->release_host(data_, bytes_);
    }
  }

  /// Null if the buffer is empty.
  [[nodiscard]] void* data() const noexcept { return data_; }
  /// The memory as an array of T. The host may read it only if its kind is memory::host, or on the CPU.
  template <class T>
  [[nodiscard]] T* as() const noexcept {
    return static_cast<T*>(data_);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }  ///< as asked for

  /// Addresses stay valid.
  void swap(buffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(bytes_, other.bytes_);
    std::swap(kind_, other.kind_);
    std::swap(data_, other.data_);
  }

private:
  D* device_ = nullptr;  ///< null when there is nothing to release
  std::size_t bytes_ = 0;
  memory kind_ = memory::device;
  void* data_ = nullptr;
};

}  // namespace superoffload
