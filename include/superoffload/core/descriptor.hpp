// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>
#include <utility>

namespace superoffload {

/// A file descriptor of the system, closed at the end; below 0: none. Can be moved, not copied.
class descriptor {
public:
  descriptor() = default;
  /// Takes over `fd`; -1: none.
  explicit descriptor(int fd) : fd_{fd} {}
  /// Afterwards `other` has none.
  descriptor(descriptor&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
  /// Exchanges the descriptors: the one that this object had is closed with `other`.
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }

  /// For calls of the system; stays this object's. -1: none.
  [[nodiscard]] int get() const noexcept { return fd_; }

private:
  int fd_ = -1;
};

}  // namespace superoffload
