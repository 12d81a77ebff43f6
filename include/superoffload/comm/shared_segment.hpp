// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace superoffload::comm {

namespace detail {
struct segment_head;
struct segment_rank;
inline constexpr std::size_t host_piece_bytes = std::size_t{16} << 10;
}  // namespace detail

/// A rank's call in a lane; every other rank must make the same one.
struct call {
  /// none: no call yet. all_gather and reduce_scatter are queued on streams; gather and barrier run on the
  /// host.
  enum class kind : std::uint8_t { none, all_gather, reduce_scatter, gather, barrier };
  kind what = kind::none;    ///< none: no call has been made
  dtype from = dtype::u8;    ///< u8: bytes
  dtype to = dtype::u8;      ///< of reduce_scatter only
  bool accumulates = false;  ///< of reduce_scatter only
  std::uint64_t count = 0;   ///< of elements of `from`
  std::uint64_t number = 0;  ///< of earlier calls in this lane
  char where[72] = {};       ///< the caller's last range, cut

  /// Whether both are the same operation, in whatever range.
  [[nodiscard]] bool same_as(call const& other) const noexcept {
    return what == other.what && from == other.from && to == other.to && accumulates == other.accumulates &&
           count == other.count && number == other.number;
  }
  /// A text such as "reduce_scatter of 65536 BF16 to F32 (call 12, in backward of model.layers.3)".
  [[nodiscard]] std::string text() const;
  /// Notes the calling thread's last range.
  void note_range() noexcept;
};

/// Memory that the ranks of one host share. Threads of one process use one object; processes have an object
/// each over the same descriptor. It is an anonymous file, so that nothing is left after the last process,
/// however it ended.
class shared_segment {
public:
  /// What a segment is made with.
  struct settings {
    int ranks = 1;                                   ///< 1 to most_ranks
    std::size_t piece_bytes = std::size_t{1} << 20;  ///< of a rank's data that others see in one round
    /// How long a rank waits for a live one that does not come.
    std::chrono::milliseconds patience = std::chrono::minutes{5};
    /// How long it waits for one that a signal has stopped; at most `patience`.
    std::chrono::milliseconds stopped = std::chrono::seconds{8};
    /// How long ranks of another launcher wait for each other to come; at most `patience`.
    std::chrono::milliseconds gathering = std::chrono::minutes{1};
  };
  static constexpr int most_ranks = 1024;  ///< of a segment

  /// Creates one. Throws `error`: bad_input for invalid settings, cannot_fit when there is no memory.
  explicit shared_segment(settings const& s);
  /// Opens the segment behind a descriptor that another process created. The object owns the descriptor.
  /// Throws `error` (bad_input) when it is not a segment of this version.
  static shared_segment attach(int descriptor);

  /// Leaves `other` without a segment; it may only be destroyed or assigned to.
  shared_segment(shared_segment&& other) noexcept
      : descriptor_{std::exchange(other.descriptor_, -1)},
        head_{std::exchange(other.head_, nullptr)},
        bytes_{other.bytes_} {}
  /// Releases the segment of this and takes that of `other`.
  shared_segment& operator=(shared_segment&& other) noexcept {
    shared_segment{std::move(other)}.swap(*this);
    return *this;
  }
  ~shared_segment();
  /// Exchanges the segments.
  void swap(shared_segment& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(head_, other.head_);
    std::swap(bytes_, other.bytes_);
  }

  /// Closed by exec, unless the caller clears the flag.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// The number of ranks that it was made for.
  [[nodiscard]] int ranks() const noexcept;

  /// Fails the group: every wait of a rank ends with "rank <rank> <what>". `by` is a rank or, negative, a
  /// process outside of the group. The first call counts.
  void mark_failed(int rank, std::string_view what, int by = -1) noexcept;
  /// Throws `error` (rank_failed) when the group has failed.
  void check() const;

private:
  friend class membership;
  shared_segment() = default;
  void map();
  [[nodiscard]] detail::segment_rank& line(int rank) const noexcept;

  int descriptor_ = -1;
  detail::segment_head* head_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A rank's access to a segment. There are two lanes, for what is queued on streams and for what the host
/// does. In each of them one thread at a time makes exchanges, and every rank makes the same ones.
///
/// An exchange has rounds. In a round each rank writes up to piece_bytes of its own, publishes them with its
/// call, and reads what all ranks have published. A rank's memory is two pieces, used alternately: a rank
/// that has published round n has read round n - 1, so that a round needs only one wait.
class membership {
public:
  /// Separate sequences of calls: those queued on streams, and those that the host makes at once.
  enum class lane : std::uint8_t { queued, host };

  /// Becomes rank `rank`. The segment outlives it. Throws `error`: bad_input for an invalid rank, rank_failed
  /// when the rank is or was taken.
  membership(shared_segment& shared, int rank);
  membership(membership const&) = delete;
  membership& operator=(membership const&) = delete;
  ~membership() { leave(); }
  /// Every wait for this rank fails from now on. For a rank that makes no more calls itself but must still
  /// wait for others.
  void leave() noexcept;

  [[nodiscard]] int rank() const noexcept { return rank_; }    ///< from 0
  [[nodiscard]] int ranks() const noexcept { return ranks_; }  ///< those of the segment
  /// The most bytes that a rank can publish in one round.
  [[nodiscard]] std::size_t piece_bytes(lane l) const noexcept {
    return l == lane::queued ? piece_bytes_ : detail::host_piece_bytes;
  }

  /// `rounds` rounds of `c`, at least one: write(std::byte* own, round), then read(round), which finds rank
  /// r's data at piece(l, r). Throws `error` (rank_failed) when another rank makes another call, has ended or
  /// left, has aborted, or does not come within the segment's patience. A round that all ranks have reached
  /// completes, whatever they do next: all of them know what they agreed on in it, such as to fail.
  template <class Write, class Read>
  void exchange(lane l, call const& c, std::uint64_t rounds, Write&& write, Read&& read) {
    check();
    for (std::uint64_t round = 0; round < rounds; ++round) {
      write(own_piece(l), round);
      publish(l, c);
      await_all(l, c);
      read(round);
    }
  }
  /// What rank r has published in the round that `read` is called for.
  [[nodiscard]] std::byte const* piece(lane l, int r) const noexcept;

  /// On the host's lane: to[r] = rank r's `from`, of any number of bytes.
  void gather(void const* from, void* to, std::size_t bytes);
  /// On the host's lane: returns when all ranks have called it. \throws error(rank_failed) as exchange().
  void barrier();

  /// Fails the group with "rank <own> failed: <reason>"; the first failure counts.
  void abort(std::string_view reason) noexcept;
  /// \throws error(rank_failed) when the group has failed.
  void check() const { segment_->check(); }
  /// Fails the group if the process of a rank has ended, at any point: for ranks whose devices may still wait
  /// for its device. "rank 1 (process 123) ended `before_what`".
  void fail_if_process_ended(std::string_view before_what) const;
  /// How long an exchange waits for a live rank that does not come; as in the segment's settings.
  [[nodiscard]] std::chrono::milliseconds patience() const noexcept;

private:
  [[nodiscard]] std::byte* piece_at(lane l, int r, std::uint32_t round) const noexcept;
  [[nodiscard]] std::byte* own_piece(lane l) const noexcept;
  void publish(lane l, call const& c) noexcept;
  void await_all(lane l, call const& mine);
  [[nodiscard]] bool has_published(lane l, int r) const noexcept;
  /// Fails the group if a rank has ended or left before the round that this one waits in.
  void fail_if_rank_gone(lane l, call const& mine) const;
  /// The process of rank r; 0 if none has taken the rank, or if it is this process.
  [[nodiscard]] int process_of(int r) const;
  /// The process of rank r if it has ended without leaving, else 0.
  [[nodiscard]] int ended_process_of(int r) const;

  shared_segment* segment_;
  int rank_;
  int ranks_;
  std::size_t piece_bytes_;
  std::uint32_t rounds_[2] = {0, 0};  ///< published so far, by lane
  std::uint64_t on_host_ = 0;         ///< calls of gather() and barrier() so far
};

}  // namespace superoffload::comm

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/comm/impl/shared_segment_inl.hpp>
#endif
