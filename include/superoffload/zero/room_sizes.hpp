// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace superoffload::zero {

/// How large rooms are that the units of a model take turns in, and which of them a unit may have.
///
/// The embedding and the head are often larger than any block, and far apart: of three rooms or more one is
/// for them, and the others are as large as the largest unit between them. A head that uses the embedding,
/// too, is used with it at once: then it goes with the blocks. Where every unit has a room, so have both.
template <class Bytes>
class room_sizes {
public:
  room_sizes() = default;
  /// `rooms` of `bytes` each.
  room_sizes(Bytes bytes, int rooms) : rooms_{rooms}, large_{rooms}, largest_{bytes}, block_{bytes} {}
  /// At most `rooms`, and one for each unit. `units`: what each wants, in the order of the forward; 0:
  /// nothing. `ends_meet`: are the first and the last used at once?
  room_sizes(std::vector<Bytes> const& units, int rooms, bool ends_meet) {
    Bytes between{};
    for (std::size_t u = 0; u < units.size(); ++u) {
      bool const is_end = u == 0 || (u + 1 == units.size() && !ends_meet);
      largest_ = std::max(largest_, units[u]);
      between = is_end ? between : std::max(between, units[u]);
      rooms_ += units[u] > Bytes{} ? 1 : 0;
    }
    bool const for_each = rooms_ <= rooms;
    rooms_ = std::min(rooms_, rooms);
    block_ = rooms_ >= 3 ? between : largest_;
    auto const larger = std::count_if(units.begin(), units.end(), [this](Bytes b) { return b > block_; });
    large_ = for_each ? static_cast<int>(larger) : std::min(rooms_, 1);
  }

  /// The same number of them, all as large as the largest unit.
  static room_sizes alike(std::vector<Bytes> const& units, int rooms) {
    room_sizes const mixed{units, rooms, false};
    return {mixed.largest_, mixed.rooms_};
  }

  [[nodiscard]] int rooms() const noexcept { return rooms_; }
  [[nodiscard]] Bytes of(int room) const noexcept { return room < large_ ? largest_ : block_; }
  [[nodiscard]] Bytes largest() const noexcept { return largest_; }
  [[nodiscard]] Bytes total() const noexcept {
    return static_cast<Bytes>(large_) * largest_ + static_cast<Bytes>(rooms_ - large_) * block_;
  }
  /// Is the room for units that want so much?
  [[nodiscard]] bool suits(int room, Bytes wanted) const noexcept {
    return (wanted > block_) == (of(room) > block_);
  }

private:
  int rooms_ = 0, large_ = 0;  ///< the first ones are large
  Bytes largest_{}, block_{};  ///< of a large room, and of each other
};

}  // namespace superoffload::zero
