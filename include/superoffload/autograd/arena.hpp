// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace superoffload::autograd {

/// Two stacks in one piece of device memory: one grows up from its begin, the other down from its end.
/// Allocation moves a mark, release moves it back. The arena owns no memory and touches none, so the same
/// calls without memory (a dry pass) give the peak.
class activation_arena {
public:
  static constexpr std::size_t alignment = 256;
  enum class side { begin, end };

  activation_arena() = default;
  /// `bytes` must be a multiple of `alignment`, as every peak is.
  activation_arena(void* memory, std::size_t bytes)
      : memory_{memory}, bytes_{bytes / alignment * alignment}, dry_{false} {}

  [[nodiscard]] bool dry() const noexcept { return dry_; }

  /// From now on allocate, mark and release use this side.
  void turn_to(side s) noexcept { side_ = s; }

  template <class T>
  T* allocate(std::int64_t count) {
    auto const bytes = (static_cast<std::size_t>(count) * sizeof(T) + alignment - 1) / alignment * alignment;
    auto const before = used();
    used() += bytes;
    auto const all = used_[0] + used_[1];
    peak_ = std::max(peak_, all);
    expect(dry_ || all <= bytes_, exit_code::internal, "activations need ", all,
           " bytes, but the plan reserved ", bytes_, ": this batch is larger than the planned one");
    auto const at = side_ == side::begin ? before : bytes_ - used();
    return reinterpret_cast<T*>(base() + at);
  }

  [[nodiscard]] std::size_t mark() const noexcept { return used_[static_cast<std::size_t>(side_)]; }
  void release(std::size_t mark) noexcept { used() = mark; }
  void release_all() noexcept {
    used_ = {};
    turn_to(side::begin);
  }
  /// Does `pointer` lie in memory that release(mark) would free on the side of the begin?
  [[nodiscard]] bool above(void const* pointer, std::size_t mark) const noexcept {
    auto const address = reinterpret_cast<std::uintptr_t>(pointer);
    return address >= base() + mark && address < base() + used_[0];
  }
  [[nodiscard]] std::size_t peak() const noexcept { return peak_; }

private:
  [[nodiscard]] std::size_t& used() noexcept { return used_[static_cast<std::size_t>(side_)]; }
  /// Addresses of a dry arena are distinct and never dereferenced.
  [[nodiscard]] std::uintptr_t base() const noexcept {
    return dry_ ? alignment : reinterpret_cast<std::uintptr_t>(memory_);
  }

  void* memory_ = nullptr;
  std::size_t bytes_ = std::size_t{1} << 60;
  bool dry_ = true;
  side side_ = side::begin;
  std::array<std::size_t, 2> used_{};
  std::size_t peak_ = 0;
};

/// A stack of host memory for nodes and variables. It grows by chunks and keeps them, so that the steady
/// state allocates nothing.
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
    void* const memory = chunks_[at_.chunk].get() + at_.used;
    at_.used += bytes;
    return memory;
  }

  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  position at_;
};

}  // namespace superoffload::autograd
