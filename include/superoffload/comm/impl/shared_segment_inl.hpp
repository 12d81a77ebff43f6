// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/shared_segment.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/range.hpp>
#include <superoffload/core/system_call.hpp>

#include <climits>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/futex.h>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace superoffload::comm {

namespace detail {

/// A word that threads of any process can sleep on.
using word = std::atomic<std::uint32_t>;
static_assert(word::is_always_lock_free && sizeof(word) == 4);

enum class rank_state : std::uint32_t { free, taken, left };

inline constexpr std::size_t max_reason = 512;

struct alignas(64) segment_rank {
  std::atomic<rank_state> state;
  std::atomic<std::int32_t> process;
  alignas(64) word published[2];  ///< rounds published, by lane
  call calls[2][2];               ///< by lane and round, like the pieces
  std::atomic<bool> writes;       ///< `why` is written at most once
  char why[max_reason];           ///< why this rank failed the group
};

struct alignas(64) segment_head {
  static constexpr std::uint64_t expected_magic = 0x3430'6e6f'6967'6572;  // change it with the layout

  std::uint64_t magic;
  std::uint64_t piece_bytes;
  std::int64_t patience_ms;
  std::int64_t stopped_ms;
  std::int32_t ranks;
  /// Whose `why` counts: a rank + 2, 1 for a process outside of the group, 0 for none. It is one word, so
  /// that a process that ends while it writes its reason leaves no half-written state.
  std::atomic<std::uint32_t> failed;
  std::atomic<bool> writes;
  char why[max_reason];
};

/// How long a rank sleeps before it checks whether the others still live.
inline constexpr std::chrono::milliseconds liveness_interval{50};

SUPEROFFLOAD_INLINE void sleep_on(word& w, std::uint32_t while_it_is) {
  timespec const time{0, std::chrono::nanoseconds{liveness_interval}.count()};
  syscall(SYS_futex, &w, FUTEX_WAIT, while_it_is, &time, nullptr, 0);
}
SUPEROFFLOAD_INLINE void wake(word& w) { syscall(SYS_futex, &w, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

SUPEROFFLOAD_INLINE std::size_t bytes_of(std::size_t ranks, std::size_t piece_bytes) {
  return sizeof(segment_head) + ranks * (sizeof(segment_rank) + 2 * (piece_bytes + host_piece_bytes));
}

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

/// Each rank that is a process of its own locks a byte of the file. The kernel releases the lock when the
/// process ends, however it ends and whether or not its parent has noticed.
SUPEROFFLOAD_INLINE struct flock rank_lock(int rank) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

/// Whether a signal has stopped the process. One that a debugger holds does not count.
SUPEROFFLOAD_INLINE bool is_stopped(int process) {
  if (process <= 0) {
    return false;
  }
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/stat", process);
  int const file = uninterrupted([&] { return ::open(path, O_RDONLY | O_CLOEXEC); });
  if (file < 0) {
    return false;
  }
  char text[128];  // process (name of at most 63 bytes) state ...
  auto const got = uninterrupted([&] { return ::read(file, text, sizeof text); });
  ::close(file);
  auto const name_end =
      std::string_view{text, static_cast<std::size_t>(std::max<ssize_t>(got, 0))}.rfind(") ");
  return name_end != std::string_view::npos && name_end + 2 < sizeof text && text[name_end + 2] == 'T';
}

}  // namespace detail

using detail::rank_state;
using detail::segment_head;
using detail::segment_rank;

SUPEROFFLOAD_INLINE shared_segment::shared_segment(settings const& s) {
  expect(s.ranks >= 1 && s.ranks <= most_ranks, exit_code::bad_input, "a group of ", s.ranks,
         " ranks on one host: expected 1 to ", most_ranks);
  expect(s.piece_bytes >= 4096 && s.piece_bytes <= (std::size_t{1} << 30), exit_code::bad_input, "pieces of ",
         s.piece_bytes, " bytes: expected 4096 to 1 GiB");
  expect(s.patience.count() > 0, exit_code::bad_input, "a patience of ", s.patience.count(),
         " ms: expected more than 0");
  auto const ranks = static_cast<std::size_t>(s.ranks);
  // Every rank's share of a piece is whole elements at an aligned address.
  auto const piece = detail::rounded_up(s.piece_bytes, 64 * ranks);
  bytes_ = detail::bytes_of(ranks, piece);
  descriptor_ = memfd_create("superoffload ranks", MFD_CLOEXEC);
  expect_call(descriptor_ >= 0, exit_code::cannot_fit, "no shared memory for ", s.ranks, " ranks");
  ::fchmod(descriptor_, 0600);  // it has no name, but /proc shows it
  // Allocate all of it now: a page that is missing later would kill the process without a message.
  int status = 0;
  do { status = posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes_)); } while (status == EINTR);
  if (status != 0) {
    ::close(descriptor_);
    fail(exit_code::cannot_fit, "no ", bytes_, " bytes of shared memory for ", s.ranks,
         " ranks: ", std::strerror(status));
  }
  map();
  head_ = ::new (static_cast<void*>(head_)) segment_head{};
  head_->piece_bytes = piece;
  head_->patience_ms = s.patience.count();
  head_->stopped_ms = std::min(s.patience, s.stopped).count();
  head_->ranks = s.ranks;
  for (int r = 0; r < s.ranks; ++r) { ::new (static_cast<void*>(&line(r))) segment_rank{}; }
  head_->magic = segment_head::expected_magic;
}

SUPEROFFLOAD_INLINE shared_segment shared_segment::attach(int descriptor) {
  shared_segment shared;
  struct stat about{};
  expect_call(::fstat(descriptor, &about) == 0, exit_code::bad_input, "descriptor ", descriptor,
              " of the ranks' shared memory");
  expect(about.st_size >= static_cast<off_t>(sizeof(segment_head)), exit_code::bad_input, "descriptor ",
         descriptor, " has ", about.st_size, " bytes: expected the ranks' shared memory");
  shared.descriptor_ = descriptor;
  shared.bytes_ = static_cast<std::size_t>(about.st_size);
  shared.map();
  auto const& head = *shared.head_;
  expect(head.magic == segment_head::expected_magic && head.ranks >= 1 && head.ranks <= most_ranks &&
             detail::bytes_of(static_cast<std::size_t>(head.ranks), head.piece_bytes) == shared.bytes_,
         exit_code::bad_input, "descriptor ", descriptor,
         " is not the ranks' shared memory: was it made by another version of the program?");
  return shared;
}

SUPEROFFLOAD_INLINE void shared_segment::map() {
  void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (memory == MAP_FAILED) {
    int const status = errno;
    ::close(std::exchange(descriptor_, -1));
    fail(exit_code::cannot_fit, "cannot map ", bytes_,
         " bytes of the ranks' shared memory: ", std::strerror(status));
  }
  head_ = static_cast<segment_head*>(memory);
}

SUPEROFFLOAD_INLINE shared_segment::~shared_segment() {
  if (head_ != nullptr) {
    ::munmap(head_, bytes_);
  }
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

SUPEROFFLOAD_INLINE int shared_segment::ranks() const noexcept { return head_->ranks; }

SUPEROFFLOAD_INLINE detail::segment_rank& shared_segment::line(int rank) const noexcept {
  return reinterpret_cast<segment_rank*>(head_ + 1)[rank];
}

SUPEROFFLOAD_INLINE void shared_segment::mark_failed(int rank, std::string_view what, int by) noexcept {
  auto& writes = by < 0 ? head_->writes : line(by).writes;
  if (head_->failed.load() != 0 || writes.exchange(true)) {
    return;
  }
  char* const why = by < 0 ? head_->why : line(by).why;
  char number[16];
  auto const [end, status] = std::to_chars(number, number + sizeof number, rank);
  char* at = why;
  auto const put = [&](std::string_view text) {
    at = std::copy_n(text.data(),
                     std::min(text.size(), static_cast<std::size_t>(why + detail::max_reason - 1 - at)), at);
  };
  put("rank ");
  put(std::string_view{number, end});
  put(" ");
  put(what);
  std::uint32_t none = 0;
  head_->failed.compare_exchange_strong(none, static_cast<std::uint32_t>(by + 2));
  for (int r = 0; r < head_->ranks; ++r) {
    for (auto& published : line(r).published) { detail::wake(published); }
  }
}

SUPEROFFLOAD_INLINE void shared_segment::check() const {
  if (auto const by = head_->failed.load(); by != 0) [[unlikely]] {
    fail(exit_code::rank_failed, std::string_view{by == 1 ? head_->why : line(static_cast<int>(by) - 2).why});
  }
}

SUPEROFFLOAD_INLINE shared_membership::shared_membership(shared_segment& shared, int rank)
    : membership{rank, shared.ranks(), shared.head_->piece_bytes,
                 std::chrono::milliseconds{shared.head_->patience_ms}},
      segment_{&shared} {
  expect(rank >= 0 && rank < ranks(), exit_code::bad_input, "rank ", rank, " of ", ranks(),
         ": expected 0 to ", ranks() - 1);
  auto lock = detail::rank_lock(rank);
  expect(::fcntl(segment_->descriptor_, F_SETLK, &lock) == 0, exit_code::rank_failed, "rank ", rank,
         " is taken by another process: were two started as the same rank?");
  auto& own = segment_->line(rank);
  auto free = rank_state::free;
  expect(own.state.compare_exchange_strong(free, rank_state::taken), exit_code::rank_failed, "rank ", rank,
         " was already taken: were two started as the same rank?");
  own.process.store(::getpid(), std::memory_order_release);
}

SUPEROFFLOAD_INLINE void shared_membership::leave() noexcept {
  auto& own = segment_->line(rank());
  own.state.store(rank_state::left, std::memory_order_release);
  for (auto& published : own.published) { detail::wake(published); }
}

SUPEROFFLOAD_INLINE std::byte* shared_membership::piece_at(lane l, int r,
                                                           std::uint32_t round) const noexcept {
  auto const all = static_cast<std::size_t>(ranks());
  auto const of_queued = piece_bytes(lane::queued);
  auto* const pieces = reinterpret_cast<std::byte*>(segment_->head_ + 1) + all * sizeof(segment_rank);
  auto const index = static_cast<std::size_t>(r) * 2 + round % 2;
  return l == lane::queued ? pieces + index * of_queued
                           : pieces + all * 2 * of_queued + index * detail::host_piece_bytes;
}

SUPEROFFLOAD_INLINE std::byte const* shared_membership::run_of(lane l, int r) const noexcept {
  auto const at = static_cast<int>(l);
  return piece_at(l, r, rounds_[at] - 1) + offsets_[at];
}
SUPEROFFLOAD_INLINE std::byte* shared_membership::own_piece(lane l) noexcept {
  return piece_at(l, rank(), rounds_[static_cast<int>(l)]);
}

SUPEROFFLOAD_INLINE void shared_membership::publish(lane l, call const& c, content const& what) noexcept {
  auto const at = static_cast<int>(l);
  auto& own = segment_->line(rank());
  own.calls[at][rounds_[at] % 2] = c;
  offsets_[at] = static_cast<std::size_t>(what.readers.index_of(rank())) * what.distance;
  own.published[at].store(++rounds_[at], std::memory_order_release);
  detail::wake(own.published[at]);
}

SUPEROFFLOAD_INLINE bool shared_membership::has_published(lane l, int r) const noexcept {
  auto const at = static_cast<int>(l);
  auto const there = segment_->line(r).published[at].load(std::memory_order_acquire);
  return static_cast<std::int32_t>(there - rounds_[at]) >= 0;  // the numbers may wrap around
}

SUPEROFFLOAD_INLINE void shared_membership::await_all(lane l, call const& mine) {
  using clock = std::chrono::steady_clock;
  auto const at = static_cast<int>(l);
  auto const patience = this->patience();
  auto const stopped_patience = std::chrono::milliseconds{segment_->head_->stopped_ms};
  clock::duration waited{0};
  for (int r = 0; r < ranks(); ++r) {
    auto& other = segment_->line(r);
    clock::duration stopped{0};
    while (!has_published(l, r)) {
      check();
      auto const before = clock::now();
      if (auto const seen = other.published[at].load(std::memory_order_acquire); !has_published(l, r)) {
        detail::sleep_on(other.published[at], seen);
      }
      // While the whole group is suspended, time passes that must not count as waiting.
      auto const slept = std::min<clock::duration>(clock::now() - before, 2 * detail::liveness_interval);
      waited += slept;
      if (slept >= detail::liveness_interval) {
        fail_if_rank_gone(l, mine);
        auto const process = process_of(r);
        stopped = detail::is_stopped(process) ? stopped + slept : clock::duration{0};
        if (stopped > stopped_patience && !has_published(l, r)) {
          mark_failed(
              r, concat("(process ", process, ") has been stopped by a signal for ", stopped_patience.count(),
                        " ms before ", mine.text(), ", where rank ", rank(), " waits for it"));
        }
      }
      if (waited > patience && !has_published(l, r)) {
        mark_failed(r, concat("did not come to ", mine.text(), " within ", patience.count(),
                              " ms, where rank ", rank(), " waits for it: it hangs, or does something else"));
      }
    }
    auto const& theirs = other.calls[at][(rounds_[at] - 1) % 2];
    if (!mine.same_as(theirs)) {
      auto const text = concat("called ", theirs.text(), " where rank ", rank(), " called ", mine.text(),
                               ": ranks must make the same calls in the same order");
      mark_failed(r, text);
    }
  }
}

SUPEROFFLOAD_INLINE int shared_membership::process_of(int r) const {
  auto const& other = segment_->line(r);
  auto const process = other.process.load(std::memory_order_acquire);
  bool const taken = other.state.load(std::memory_order_acquire) == rank_state::taken;
  return taken && process != ::getpid() ? process : 0;
}

SUPEROFFLOAD_INLINE int shared_membership::ended_process_of(int r) const {
  auto const& other = segment_->line(r);
  auto const process = process_of(r);
  if (process == 0) {
    return 0;
  }
  auto lock = detail::rank_lock(r);
  bool const free = ::fcntl(segment_->descriptor_, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
  return free && other.state.load(std::memory_order_acquire) == rank_state::taken ? process : 0;
}

SUPEROFFLOAD_INLINE void shared_membership::fail_if_rank_gone(lane l, call const& mine) const {
  for (int r = 0; r < ranks(); ++r) {
    auto const state = segment_->line(r).state.load(std::memory_order_acquire);
    if (state == rank_state::left && !has_published(l, r)) {
      mark_failed(r, concat("has left before ", mine.text(), ", where rank ", rank(), " waits for it"));
    }
    if (auto const process = ended_process_of(r); process != 0 && !has_published(l, r)) {
      mark_failed(r, concat("(process ", process, ") ended before ", mine.text(), ", where rank ", rank(),
                            " waits for it"));
    }
  }
}

SUPEROFFLOAD_INLINE void shared_membership::fail_if_process_ended(std::string_view before_what) const {
  for (int r = 0; r < ranks(); ++r) {
    if (auto const process = ended_process_of(r); process != 0) {
      mark_failed(r, concat("(process ", process, ") ended ", before_what));
    }
  }
}

}  // namespace superoffload::comm
