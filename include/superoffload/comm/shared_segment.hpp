// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/membership.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace superoffload::comm {

namespace detail {
struct segment_head;
struct segment_rank;
}  // namespace detail

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
  friend class shared_membership;
  shared_segment() = default;
  void map();
  [[nodiscard]] detail::segment_rank& line(int rank) const noexcept;

  int descriptor_ = -1;
  detail::segment_head* head_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A rank's membership of the group whose ranks share a segment. A rank's memory is two pieces, used
/// alternately: a rank that has published round n has read round n - 1, so that a round needs only one wait.
class shared_membership final : public membership {
public:
  /// Becomes rank `rank`. The segment outlives it. Throws `error`: bad_input for an invalid rank, rank_failed
  /// when the rank is or was taken.
  shared_membership(shared_segment& shared, int rank);
  /// The same for a segment that this process uses for this rank alone, which the membership keeps.
  shared_membership(shared_segment&& shared, int rank)
      : shared_membership{std::make_unique<shared_segment>(std::move(shared)), rank} {}
  ~shared_membership() override { leave(); }

  [[nodiscard]] std::byte const* run_of(lane l, int r) const noexcept override;
  void leave() noexcept override;
  void check() const override { segment_->check(); }
  void fail_if_process_ended(std::string_view before_what) const override;

private:
  shared_membership(std::unique_ptr<shared_segment> owned, int rank) : shared_membership{*owned, rank} {
    owned_ = std::move(owned);
  }

  void mark_failed(int r, std::string_view what) const noexcept override {
    segment_->mark_failed(r, what, rank());
  }
  [[nodiscard]] std::byte* own_piece(lane l) noexcept override;
  void publish(lane l, call const& c, content const& own) noexcept override;
  void await_all(lane l, call const& mine) override;

  [[nodiscard]] std::byte* piece_at(lane l, int r, std::uint32_t round) const noexcept;
  [[nodiscard]] bool has_published(lane l, int r) const noexcept;
  /// Fails the group if a rank has ended or left before the round that this one waits in.
  void fail_if_rank_gone(lane l, call const& mine) const;
  /// The process of rank r; 0 if none has taken the rank, or if it is this process.
  [[nodiscard]] int process_of(int r) const;
  /// The process of rank r if it has ended without leaving, else 0.
  [[nodiscard]] int ended_process_of(int r) const;

  std::unique_ptr<shared_segment> owned_;  ///< null where the segment is the caller's
  shared_segment* segment_;
  std::uint32_t rounds_[2] = {0, 0};  ///< published so far, by lane
  std::size_t offsets_[2] = {0, 0};   ///< of the runs for this rank in the last round's pieces, by lane
};

}  // namespace superoffload::comm

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/comm/impl/shared_segment_inl.hpp>
#endif
