// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace superoffload::autograd {

/// A stack of device memory: allocation moves a mark up, release moves it back. It owns nothing and touches
/// nothing, so that the same sequence of calls without memory (a dry pass) tells the peak.
class activation_arena {
public:
  static constexpr std::size_t alignment = 256;

  activation_arena() = default;
  activation_arena(void* memory, std::size_t bytes) : memory_{memory}, bytes_{bytes}, dry_{false} {}

  [[nodiscard]] bool dry() const noexcept { return dry_; }

  template <class T>
  T* allocate(std::int64_t count) {
    auto const begin = top_;
    top_ += (static_cast<std::size_t>(count) * sizeof(T) + alignment - 1) / alignment * alignment;
    peak_ = std::max(peak_, top_);
    if (dry_) {
      return reinterpret_cast<T*>(alignment + begin);
    }  // distinct, never dereferenced
    expect(top_ <= bytes_, exit_code::internal, "activations need ", top_, " bytes, but the plan reserved ",
           bytes_, ": this batch is larger than the one that was planned for");
    return reinterpret_cast<T*>(static_cast<std::byte*>(memory_) + begin);
  }

  [[nodiscard]] std::size_t mark() const noexcept { return top_; }
  void release(std::size_t mark) noexcept { top_ = mark; }
  /// Does `pointer` lie in what release(mark) would give back?
  [[nodiscard]] bool above(void const* pointer, std::size_t mark) const noexcept {
    auto const address = reinterpret_cast<std::uintptr_t>(pointer);
    auto const base = dry_ ? alignment : reinterpret_cast<std::uintptr_t>(memory_);
    return address >= base + mark && address < base + top_;
  }
  [[nodiscard]] std::size_t peak() const noexcept { return peak_; }

private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  bool dry_ = true;
  std::size_t top_ = 0;
  std::size_t peak_ = 0;
};

/// A stack of host memory for nodes and variables: grows by chunks that are kept, so that a steady state
/// allocates nothing.
class node_arena {
public:
  template <class T, class... Arguments>
  T* make(Arguments&&... arguments) {
    static_assert(std::is_trivially_destructible_v<T>, "nodes are dropped without being destroyed");
    return new (take(sizeof(T), alignof(T))) T{std::forward<Arguments>(arguments)...};
  }

  struct position {
    std::size_t chunk = 0;
    std::size_t used = 0;
  };
  [[nodiscard]] position mark() const noexcept { return at_; }
  void release(position mark) noexcept { at_ = mark; }

private:
  static constexpr std::size_t chunk_bytes = std::size_t{1} << 16;

  void* take(std::size_t bytes, std::size_t align) {
    at_.used = (at_.used + align - 1) / align * align;
    if (chunks_.empty() || at_.used + bytes > chunk_bytes) {
      at_ = {chunks_.empty() ? 0 : at_.chunk + 1, 0};
      if (at_.chunk == chunks_.size()) {
        chunks_.push_back(std::make_unique<std::byte[]>(chunk_bytes));
      }
    }
    void* const place = chunks_[at_.chunk].get() + at_.used;
    at_.used += bytes;
    return place;
  }

  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  position at_;
};

}  // namespace superoffload::autograd
