// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/call.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

namespace superoffload::comm {

namespace detail {
inline constexpr std::size_t host_piece_bytes = std::size_t{16} << 10;  ///< in the host's lane
}

/// A rank's access to its group on the host: through memory that the ranks share, or by messages between
/// hosts. There are two lanes, for what is queued on streams and for what the host does. In each of them one
/// thread at a time makes exchanges, and every rank makes the same ones.
///
/// An exchange has rounds. In a round each rank writes into a piece of memory, publishes it with its call,
/// and reads what all ranks have published for it.
class membership {
public:
  /// Separate sequences of calls: those queued on streams, and those that the host makes at once.
  enum class lane : std::uint8_t { queued, host };
  /// What a rank has written into its piece in a round: one run of bytes for all ranks of a subset, or one
  /// for each.
  struct content {
    std::size_t bytes = 0;     ///< of a run
    std::size_t distance = 0;  ///< from the run for a member to that for the next one; 0: one run for all
    subset readers{};          ///< the ranks that read it; of no members: all
  };

  membership(membership const&) = delete;
  membership& operator=(membership const&) = delete;
  virtual ~membership() = default;

  [[nodiscard]] int rank() const noexcept { return rank_; }    ///< from 0
  [[nodiscard]] int ranks() const noexcept { return ranks_; }  ///< of the group
  /// The most bytes that a rank can write in one round.
  [[nodiscard]] std::size_t piece_bytes(lane l) const noexcept {
    return l == lane::queued ? piece_bytes_ : detail::host_piece_bytes;
  }
  /// How long an exchange waits for a live rank that does not come.
  [[nodiscard]] std::chrono::milliseconds patience() const noexcept { return patience_; }

  /// `rounds` rounds of `c`, at least one: write(std::byte* own, round), which returns the content, the same
  /// on all ranks but for the readers, which are the ranks of its subset; then read(round), which finds the
  /// run for this rank of rank r in that subset at run_of(l, r). Pieces are
  /// aligned to 64 bytes. Throws `error` (rank_failed) when another rank makes another call, has ended or
  /// left, has aborted, or does not come within the group's patience. A round that all ranks have reached
  /// completes, whatever they do next: all of them know what they agreed on in it, such as to fail.
  template <class Write, class Read>
  void exchange(lane l, call const& c, std::uint64_t rounds, Write&& write, Read&& read) {
    check();
    for (std::uint64_t round = 0; round < rounds; ++round) {
      content own = write(own_piece(l), round);
      if (own.readers.number == 0) {
        own.readers.number = ranks_;
      }
      publish(l, c, own);
      await_all(l, c);
      read(round);
    }
  }
  /// A round in which ranks compare their calls, and nothing else.
  void compare(lane l, call const& c) {
    exchange(l, c, 1, [](std::byte*, std::uint64_t) { return content{}; }, [](std::uint64_t) {});
  }
  /// What rank r has published for this rank in the round that `read` is called for.
  [[nodiscard]] virtual std::byte const* run_of(lane l, int r) const noexcept = 0;

  /// What every rank has, in order of rank: the first exchange on a lane.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  [[nodiscard]] std::vector<T> greet(lane l, T const& own) {
    static_assert(sizeof(T) <= 4096, "pieces may be this small");
    std::vector<T> all(static_cast<std::size_t>(ranks_));
    exchange(
        l, {.what = call::kind::gather, .count = sizeof(T)}, 1,
        [&](std::byte* to, std::uint64_t) {
          std::memcpy(to, &own, sizeof own);
          return content{.bytes = sizeof own};
        },
        [&](std::uint64_t) {
          for (std::size_t r = 0; r < all.size(); ++r) {
            std::memcpy(&all[r], run_of(l, static_cast<int>(r)), sizeof own);
          }
        });
    return all;
  }
  /// On the host's lane: to[r] = rank r's `from`, of any number of bytes.
  void gather(void const* from, void* to, std::size_t bytes);
  /// On the host's lane: returns when all ranks have called it. \throws error(rank_failed) as exchange().
  void barrier();

  /// Every wait for this rank fails from now on. For a rank that makes no more calls itself but must still
  /// wait for others.
  virtual void leave() noexcept = 0;
  /// Fails the group with "rank <own> failed: <reason>"; the first failure counts.
  void abort(std::string_view reason) noexcept;
  /// \throws error(rank_failed) when the group has failed.
  virtual void check() const = 0;
  /// Fails the group if the process of a rank is known to have ended, at any point: for ranks whose devices
  /// may still wait for its device. "rank 1 (process 123) ended `before_what`".
  virtual void fail_if_process_ended(std::string_view before_what) const = 0;

protected:
  membership(int rank, int ranks, std::size_t piece_bytes, std::chrono::milliseconds patience)
      : rank_{rank}, ranks_{ranks}, piece_bytes_{piece_bytes}, patience_{patience} {}

  /// Fails the group with "rank <r> <what>", unless it has failed.
  virtual void mark_failed(int r, std::string_view what) const noexcept = 0;
  /// Where this rank writes in the next round.
  [[nodiscard]] virtual std::byte* own_piece(lane l) noexcept = 0;
  /// Begins the next round: tells the other ranks of the call and of what is written.
  virtual void publish(lane l, call const& c, content const& own) = 0;
  /// Returns when all ranks have published the round. \throws as exchange().
  virtual void await_all(lane l, call const& mine) = 0;

private:
  int rank_;
  int ranks_;
  std::size_t piece_bytes_;
  std::chrono::milliseconds patience_;
  std::uint64_t on_host_ = 0;  ///< calls of gather() and barrier() so far
};

}  // namespace superoffload::comm

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/comm/impl/membership_inl.hpp>
#endif
