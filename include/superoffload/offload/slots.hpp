// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/buffer.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace superoffload::offload {

/// Pinned buffers of one bucket each, lent one by one. Not for several threads at once.
template <device_policy D, element T>
class slot_pool {
public:
  static std::size_t bytes(std::int64_t elements, int slots) {
    return static_cast<std::size_t>(elements) * sizeof(T) * static_cast<std::size_t>(slots);
  }

  slot_pool(D& device, std::int64_t elements, int slots)
      : memory_{device, elements == 0 ? 0 : bytes(elements, slots), memory::host} {
    if (elements > 0) {
      auto* slot = memory_.template as<T>();
      for (int i = 0; i < slots; ++i) { free_.push_back(slot + i * elements); }
    }
  }

  [[nodiscard]] std::size_t free() const noexcept { return free_.size(); }
  [[nodiscard]] T* take() {
    expect(!free_.empty(), exit_code::internal, "a slot was taken when none was free");
    T* const slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give(T* slot) { free_.push_back(slot); }

private:
  buffer<D> memory_;
  std::vector<T*> free_;
};

}  // namespace superoffload::offload
