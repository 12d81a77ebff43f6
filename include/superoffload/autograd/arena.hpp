// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace superoffload::autograd {

/// Two stacks in one piece of device memory: one grows up from its begin, the other down from its end. A
/// third grows up inside a buffer that was allocated on the side of the begin. Allocation moves a mark,
/// release moves it back. The arena owns no memory and touches none, so the same calls without memory (a dry
/// pass) give the peak.
class activation_arena {
public:
  static constexpr std::size_t alignment = 256;  ///< bytes; of every address and size
  /// Which of the stacks grows: up from the begin, down from the end, or up in the buffer of open().
  enum class side { begin, end, buffer };

  activation_arena() = default;
  /// `bytes` must be a multiple of `alignment`, as every peak is.
  activation_arena(void* memory, std::size_t bytes)
      : memory_{memory}, bytes_{bytes / alignment * alignment}, dry_{false} {}

  /// Is there no memory? Then addresses are distinct but must not be dereferenced.
  [[nodiscard]] bool dry() const noexcept { return dry_; }

  /// From now on allocate, mark and release use this side.
  void turn_to(side s) noexcept { side_ = s; }
  [[nodiscard]] side turned_to() const noexcept { return side_; }  ///< the side in use
  /// From now on side::buffer fills these `bytes` bytes, a multiple of `alignment`, from their begin.
  void open(void* buffer, std::size_t bytes) noexcept {
    buffer_ = reinterpret_cast<std::uintptr_t>(buffer);
    buffer_bytes_ = bytes;
    used_[static_cast<std::size_t>(side::buffer)] = 0;
  }

  /// Room for `count` elements on the current side, not initialised. \throws error(internal) when the memory
  /// is used up; a dry arena never is.
  template <class T>
  T* allocate(std::int64_t count) {
    auto const bytes = (static_cast<std::size_t>(count) * sizeof(T) + alignment - 1) / alignment * alignment;
    auto const before = used();
    used() += bytes;
    if (side_ == side::buffer) {
      expect(used() <= buffer_bytes_, exit_code::internal, "a block keeps ", used(),
             " bytes, but the plan reserved ", buffer_bytes_, ": this batch is larger than the planned one");
      return reinterpret_cast<T*>(buffer_ + before);
    }
    auto const all = used_[0] + used_[1];
    peak_ = std::max(peak_, all);
    expect(dry_ || all <= bytes_, exit_code::internal, "activations need ", all,
           " bytes, but the plan reserved ", bytes_, ": this batch is larger than the planned one");
    auto const at = side_ == side::begin ? before : bytes_ - used();
    return reinterpret_cast<T*>(base() + at);
  }

  /// The bytes in use on the current side, for release().
  [[nodiscard]] std::size_t mark() const noexcept { return used_[static_cast<std::size_t>(side_)]; }
  /// Frees what the current side allocated since mark() gave `mark`.
  void release(std::size_t mark) noexcept { used() = mark; }
  /// Frees all sides and turns to the begin. The peak stays.
  void release_all() noexcept {
    used_ = {};
    turn_to(side::begin);
  }
  /// Does `pointer` lie in memory that release(mark) would free on the side of the begin?
  [[nodiscard]] bool above(void const* pointer, std::size_t mark) const noexcept {
    auto const address = reinterpret_cast<std::uintptr_t>(pointer);
    return address >= base() + mark && address < base() + used_[0];
  }
  /// The most bytes in use at once on the sides of begin and end together, since the arena was made.
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
  std::array<std::size_t, 3> used_{};  // by side
  std::uintptr_t buffer_ = 0;
  std::size_t buffer_bytes_ = 0;
  std::size_t peak_ = 0;
};

/// A stack of host memory for nodes and variables. It grows by chunks and keeps them, so that the steady
/// state allocates nothing.
class node_arena {
public:
  /// A T from `arguments`, valid until its memory is released; its destructor never runs.
  template <class T, class... Arguments>
  T* make(Arguments&&... arguments) {
    static_assert(std::is_trivially_destructible_v<T>, "nodes are dropped without being destroyed");
    return new (take(sizeof(T), alignof(T))) T{std::forward<Arguments>(arguments)...};
  }

  /// A state of the stack, for release().
  struct position {
    std::size_t chunk = 0;  ///< index of the chunk that is being filled
    std::size_t used = 0;   ///< bytes of that chunk
  };
  /// The end of what was made so far.
  [[nodiscard]] position mark() const noexcept { return at_; }
  /// Drops what was made since mark() gave `mark`; the chunks stay for reuse.
  void release(position mark) noexcept { at_ = mark; }

private:
  static constexpr std::size_t chunk_bytes = std::size_t{1} << 16;

  void* take(std::size_t bytes, std::size_t align);

  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  position at_;
};

}  // namespace superoffload::autograd

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/autograd/impl/arena_inl.hpp>
#endif
