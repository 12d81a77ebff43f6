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

/// What one rank does in a lane, as every other rank must do it too.
struct call {
  enum class kind : std::uint8_t { none, all_gather, reduce_scatter, gather, barrier };
  kind what = kind::none;
  dtype from = dtype::u8;
  dtype to = dtype::u8;
  bool accumulates = false;
  std::uint64_t count = 0;   ///< of elements of `from`
  std::uint64_t number = 0;  ///< of calls in this lane before this one
  char where[72] = {};       ///< the range that the caller was in, cut

  /// Whether both ranks do the same, wherever they are.
  [[nodiscard]] bool same_as(call const& other) const noexcept {
    return what == other.what && from == other.from && to == other.to && accumulates == other.accumulates &&
           count == other.count && number == other.number;
  }
  /// Such as "reduce_scatter of 65536 BF16 to F32 (call 12, in backward of model.layers.3)".
  [[nodiscard]] std::string text() const;
  /// Notes the calling thread's last range.
  void note_range() noexcept;
};

/// Memory that the ranks of one host share: threads of one process through one object, processes each through
/// one object of their own over the same descriptor. An anonymous file, so that nothing is left when the last
/// process has ended, however it ended.
class shared_segment {
public:
  struct settings {
    int ranks = 1;
    std::size_t piece_bytes = std::size_t{1} << 20;  ///< of a rank's data that others see at once
    /// How long a rank waits for another one that lives but does not come.
    std::chrono::milliseconds patience = std::chrono::minutes{5};
    /// How long it waits for one that a signal has stopped, at most its patience.
    std::chrono::milliseconds stopped = std::chrono::seconds{8};
    /// How long ranks that somebody else starts wait for each other to come, at most their patience.
    std::chrono::milliseconds gathering = std::chrono::minutes{1};
  };
  static constexpr int most_ranks = 1024;

  /// A new one. Throws `error`: bad_input for settings that make no sense, cannot_fit when there is no
  /// memory.
  explicit shared_segment(settings const& s);
  /// The one behind a descriptor that another process made. The descriptor is the object's from then on.
  /// Throws `error` (bad_input) when it is none of this version's.
  static shared_segment attach(int descriptor);

  shared_segment(shared_segment&& other) noexcept
      : descriptor_{std::exchange(other.descriptor_, -1)},
        head_{std::exchange(other.head_, nullptr)},
        bytes_{other.bytes_} {}
  shared_segment& operator=(shared_segment&& other) noexcept {
    shared_segment{std::move(other)}.swap(*this);
    return *this;
  }
  ~shared_segment();
  void swap(shared_segment& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(head_, other.head_);
    std::swap(bytes_, other.bytes_);
  }

  /// Closed by exec unless that is changed.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] int ranks() const noexcept;

  /// Ends the waiting of every rank with "rank <rank> <what>", `by` a rank or, negative, a process outside of
  /// the group. The first one counts.
  void mark_failed(int rank, std::string_view what, int by = -1) noexcept;
  /// Throws `error` (rank_failed) when that has happened.
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

/// A rank's place in a region. There are two lanes, for what is queued on streams and for what the host does:
/// in each of them one thread at a time makes exchanges, and every rank the same ones.
///
/// An exchange goes in rounds. In a round each rank writes up to piece_bytes of its own, publishes them with
/// its call, and reads what all have published. A rank's memory is two pieces, used in turns: whoever has
/// published round n has read round n - 1, so that a round needs one waiting only.
class membership {
public:
  enum class lane : std::uint8_t { queued, host };

  /// Takes place `rank`. The region outlives it. Throws `error`: bad_input when there is no such place,
  /// rank_failed when it is or was taken.
  membership(shared_segment& shared, int rank);
  membership(membership const&) = delete;
  membership& operator=(membership const&) = delete;
  ~membership() { leave(); }
  /// Whoever waits for this rank, or will, fails. For who does not call it again, but has yet to wait for
  /// others.
  void leave() noexcept;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  [[nodiscard]] std::size_t piece_bytes(lane l) const noexcept {
    return l == lane::queued ? piece_bytes_ : detail::host_piece_bytes;
  }

  /// `rounds` rounds of `c`, at least one: write(std::byte* own, round), then read(round), which finds what
  /// rank r has written at piece(l, r). Throws `error` (rank_failed) when another rank makes another call,
  /// has ended or left, has aborted, or does not come within the region's patience. A round for which all
  /// have come is complete, whatever they do next: what they have agreed on in it, such as to fail, all know.
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
  /// What rank r has published in the round whose `read` is running.
  [[nodiscard]] std::byte const* piece(lane l, int r) const noexcept;

  /// On the host's lane: to[r] = rank r's `from`, of any number of bytes.
  void gather(void const* from, void* to, std::size_t bytes);
  void barrier();

  void abort(std::string_view reason) noexcept;
  void check() const { segment_->check(); }
  /// Condemns a rank whose process has ended, however far it had come: for those whose devices may still wait
  /// for its device. "rank 1 (process 123) ended `before_what`".
  void look_for_the_ended(std::string_view before_what) const;
  [[nodiscard]] std::chrono::milliseconds patience() const noexcept;

private:
  [[nodiscard]] std::byte* place(lane l, int r, std::uint32_t round) const noexcept;
  [[nodiscard]] std::byte* own_piece(lane l) const noexcept;
  void publish(lane l, call const& c) noexcept;
  void await_all(lane l, call const& mine);
  [[nodiscard]] bool has_published(lane l, int r) const noexcept;
  /// Condemns ranks that have ended or left before the round that this one waits in.
  void look_for_the_dead(lane l, call const& mine) const;
  /// The process that has taken the rank's place, 0 if none has or if it is this one.
  [[nodiscard]] int process_of(int r) const;
  /// The process of a rank that has ended without leaving; 0: none has.
  [[nodiscard]] int ended_process_of(int r) const;

  shared_segment* segment_;
  int rank_;
  int ranks_;
  std::size_t piece_bytes_;
  std::uint32_t rounds_[2] = {0, 0};  ///< published so far, by lane
  std::uint64_t on_host_ = 0;         ///< gather() and barrier() so far
};

}  // namespace superoffload::comm

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/comm/impl/shared_segment_inl.hpp>
#endif
