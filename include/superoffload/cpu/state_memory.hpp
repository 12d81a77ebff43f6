// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/memory_account.hpp>
#include <superoffload/core/numa.hpp>
#include <superoffload/cpu/memory.hpp>

#include <cstddef>
#include <optional>
#include <utility>

namespace superoffload::cpu {

/// Owns host memory for the optimizer's state: not initialised, in huge pages where the system has them, near
/// `node` if one is given. Without a node, each page is placed near the thread that touches it first.
class state_memory {
public:
  state_memory() = default;
  /// Counted in `account`, which must outlive this object. \throws error(cannot_fit).
  state_memory(memory_account& account, std::size_t bytes, std::optional<int> node = std::nullopt)
      : account_{&account}, bytes_{bytes}, data_{allocate_memory(bytes)} {
    account.add(bytes);
    if (node && bytes >= mapped_bytes) {
      refusal_ = prefer_node(data_, bytes, *node);
    }
  }
  /// Leaves `other` without memory.
  state_memory(state_memory&& other) noexcept
      : account_{other.account_},
        bytes_{std::exchange(other.bytes_, 0)},
        data_{std::exchange(other.data_, nullptr)},
        refusal_{other.refusal_} {}
  /// Swaps: `other` releases what this owned.
  state_memory& operator=(state_memory&& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(bytes_, other.bytes_);
    std::swap(data_, other.data_);
    std::swap(refusal_, other.refusal_);
    return *this;
  }
  ~state_memory() {
    if (data_ != nullptr) {
      release_memory(data_, bytes_);
      account_->subtract(bytes_);
    }
  }

  [[nodiscard]] void* data() const noexcept { return data_; }  ///< not initialised; null when empty
  /// The same, as an array of T.
  template <class T>
  [[nodiscard]] T* as() const noexcept {
    return static_cast<T*>(data_);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }  ///< as asked for
  /// 0, or the error number for which the pages may come from other nodes.
  [[nodiscard]] int refusal() const noexcept { return refusal_; }

private:
  memory_account* account_ = nullptr;
  std::size_t bytes_ = 0;
  void* data_ = nullptr;
  int refusal_ = 0;
};

}  // namespace superoffload::cpu
