// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/activation_checkpointing.hpp>
#include <superoffload/autograd/arena.hpp>
#include <superoffload/autograd/offloaded_activations.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace superoffload::autograd {

/// The memory of a tape's activations: an arena, and inside it the buffers that blocks take turns in if their
/// activations are offloaded.
///
/// Results that a block keeps grow from the arena's begin, or in the block's buffer. Results that it drops
/// grow from the arena's end, and are freed when the block's forward ends. Everything else grows from the
/// begin.
template <device_policy D>
class activation_memory {
public:
  activation_memory() = default;  ///< dry
  /// `offloaded` moves what blocks keep between device and host; null: it all stays. Must outlive this.
  activation_memory(activation_arena memory, offloaded_activations<D>* offloaded)
      : arena_{memory}, offloaded_{offloaded} {}

  [[nodiscard]] bool dry() const noexcept { return arena_.dry(); }                 ///< is there no memory?
  [[nodiscard]] std::size_t peak_bytes() const noexcept { return arena_.peak(); }  ///< in use at once

  /// Frees everything. Blocks take turns in `buffers` from now on.
  /// \throws error(internal) if their results would have to leave, but nothing moves them.
  void begin_run(activation_buffers const& buffers) {
    arena_.release_all();
    buffers_ = buffers;
    blocks_ = 0;
    if (buffers_.count > 0) {
      expect(dry() || offloaded_ != nullptr || buffers_.leaving() == 0, exit_code::internal,
             "this tape cannot offload activations");
      in_turns_ = allocate<std::byte>(static_cast<std::int64_t>(buffers_.device_bytes()));
    }
    if (offloaded_ != nullptr) {
      offloaded_->begin(buffers_, in_turns_);
    }
  }

  /// Room for `count` elements, not initialised.
  template <class U>
  U* allocate(std::int64_t count) {
    return arena_.template allocate<U>(count);
  }

  /// Where scratch begins.
  struct scratch_begin {
    std::size_t mark;             ///< on the side that the scratch grows on
    activation_arena::side side;  ///< that results grow on
  };
  /// What is allocated since mark() is scratch, and free after release(). A buffer has room for results only,
  /// so scratch lies outside.
  [[nodiscard]] scratch_begin mark() noexcept {
    auto const side = arena_.turned_to();
    if (side == activation_arena::side::buffer) {
      arena_.turn_to(activation_arena::side::begin);
    }
    return {arena_.mark(), side};
  }
  void release(scratch_begin const& begin) noexcept {  ///< see mark()
    arena_.release(begin.mark);
    arena_.turn_to(begin.side);
  }

  /// Before the forward of a block, which takes its buffer. \returns the block's number in this run.
  int enter_forward() {
    int const block = blocks_++;
    if (buffers_.count > 0) {
      arena_.open(in_turns_ + buffers_.offset_of(block), buffers_.bytes);
    }
    if (moves()) {
      offloaded_->enter_forward(block);
    }
    return block;
  }
  /// Calls `function` inside a block. What it allocates is kept until the block's backward has ended, or
  /// dropped.
  /// \returns the bytes.
  template <class F>
  std::size_t allocate_in_block(bool kept, F&& function) {
    using side = activation_arena::side;
    arena_.turn_to(!kept ? side::end : buffers_.count > 0 ? side::buffer : side::begin);
    auto const before = arena_.mark();
    std::forward<F>(function)();
    auto const bytes = arena_.mark() - before;
    arena_.turn_to(side::begin);
    return bytes;
  }
  /// After the forward of a block of `unit`: frees what it dropped, and what it kept begins to leave.
  void leave_forward(int block, int unit) {
    using side = activation_arena::side;
    if (moves()) {
      arena_.turn_to(side::buffer);
      offloaded_->leave_forward(block, unit, arena_.mark());
    }
    arena_.turn_to(side::end);
    arena_.release(0);
    arena_.turn_to(side::begin);
  }

  /// Before the backward of a block. \returns where its memory begins.
  std::size_t enter_backward(int block) {
    if (moves()) {
      offloaded_->enter_backward(block);
    }
    return arena_.mark();
  }
  /// Will leave_backward() free memory at `pointer`, or another block take it?
  [[nodiscard]] bool ends_with_block(void const* pointer, std::size_t begin) const noexcept {
    auto const address = reinterpret_cast<std::uintptr_t>(pointer),
               first = reinterpret_cast<std::uintptr_t>(in_turns_);
    bool const in_buffers = address >= first && address < first + buffers_.device_bytes();
    return in_buffers || arena_.above(pointer, begin);
  }
  /// After the backward of a block: frees what was allocated in it.
  void leave_backward(int block, std::size_t begin) {
    arena_.release(begin);
    if (moves()) {
      offloaded_->leave_backward(block);
    }
  }

private:
  [[nodiscard]] bool moves() const noexcept { return buffers_.leaving() > 0 && offloaded_ != nullptr; }

  activation_arena arena_;
  offloaded_activations<D>* offloaded_ = nullptr;
  activation_buffers buffers_;
  int blocks_ = 0;                 // of this run so far
  std::byte* in_turns_ = nullptr;  // the buffers, one behind the other
};

}  // namespace superoffload::autograd
