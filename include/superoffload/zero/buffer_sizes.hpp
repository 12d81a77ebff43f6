// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace superoffload::zero {

/// The sizes of buffers that the units of a model take turns in, and which buffer suits a unit.
///
/// The embedding and the head are often larger than any block, and are never needed at the same time. Of
/// three or more buffers, one is for them, and the others are as large as the largest block. With tied
/// embeddings, head and embedding are needed at once, and the head counts as a block. If there is a buffer
/// for every unit, both have their own.
template <class Bytes>
class buffer_sizes {
public:
  buffer_sizes() = default;
  /// `buffers` buffers of `bytes` each.
  buffer_sizes(Bytes bytes, int buffers)
      : buffers_{buffers}, large_{buffers}, largest_{bytes}, block_{bytes} {}
  /// At most `buffers` buffers, and at most one for each unit. `units`: bytes of each unit in the order of
  /// the forward; 0: it needs none. `tied_embeddings`: are the first and the last unit used at once?
  buffer_sizes(std::vector<Bytes> const& units, int buffers, bool tied_embeddings) {
    Bytes between{};
    for (std::size_t u = 0; u < units.size(); ++u) {
      bool const is_end = u == 0 || (u + 1 == units.size() && !tied_embeddings);
      largest_ = std::max(largest_, units[u]);
      between = is_end ? between : std::max(between, units[u]);
      buffers_ += units[u] > Bytes{} ? 1 : 0;
    }
    bool const for_each = buffers_ <= buffers;
    buffers_ = std::min(buffers_, buffers);
    block_ = buffers_ >= 3 ? between : largest_;
    auto const larger = std::count_if(units.begin(), units.end(), [this](Bytes b) { return b > block_; });
    large_ = for_each ? static_cast<int>(larger) : std::min(buffers_, 1);
  }

  /// The number of buffers; it may be below what the constructor was given.
  [[nodiscard]] int buffers() const noexcept { return buffers_; }
  /// The size of buffer `buffer`, from 0. Large buffers come first.
  [[nodiscard]] Bytes of(int buffer) const noexcept { return buffer < large_ ? largest_ : block_; }
  /// The size of the largest buffer; 0 without units that need one.
  [[nodiscard]] Bytes largest() const noexcept { return largest_; }
  /// The sum of the sizes of all buffers.
  [[nodiscard]] Bytes total() const noexcept {
    return static_cast<Bytes>(large_) * largest_ + static_cast<Bytes>(buffers_ - large_) * block_;
  }
  /// Is the buffer for units of `wanted` bytes?
  [[nodiscard]] bool suits(int buffer, Bytes wanted) const noexcept {
    return (wanted > block_) == (of(buffer) > block_);
  }

private:
  int buffers_ = 0, large_ = 0;  ///< the first `large_` ones are large
  Bytes largest_{}, block_{};    ///< bytes of a large buffer, and of every other one
};

}  // namespace superoffload::zero
