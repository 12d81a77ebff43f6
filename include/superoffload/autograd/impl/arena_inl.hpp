// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/arena.hpp>
#include <superoffload/core/inline.hpp>

#include <cstddef>
#include <memory>

namespace superoffload::autograd {

SUPEROFFLOAD_INLINE void* node_arena::take(std::size_t bytes, std::size_t align) {
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

}  // namespace superoffload::autograd
