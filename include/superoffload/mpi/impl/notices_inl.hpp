// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <mpi.h>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace superoffload::mpi::detail {

using clock = std::chrono::steady_clock;

/// Who calls MPI holds it.
SUPEROFFLOAD_INLINE std::mutex& calling() {
  static std::mutex one;
  return one;
}

SUPEROFFLOAD_INLINE std::string text_of(int status) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(status, text, &length);
  return {text, static_cast<std::size_t>(length)};
}
/// Throws for a call that failed. The caller holds calling().
SUPEROFFLOAD_INLINE void succeeds(int status, char const* call) {
  expect(status == MPI_SUCCESS, exit_code::rank_failed, call, ": ", text_of(status));
}

SUPEROFFLOAD_INLINE MPI_Comm duplicate(MPI_Comm of) {
  MPI_Comm made = MPI_COMM_NULL;
  succeeds(MPI_Comm_dup(of, &made), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  return made;
}
/// Ends a receive.
SUPEROFFLOAD_INLINE void give_up(MPI_Request& r) noexcept {
  if (r != MPI_REQUEST_NULL) {
    MPI_Cancel(&r);
    MPI_Request_free(&r);
  }
}
/// What a rank tells others beside the rounds.
struct notice {
  enum class kind : std::int32_t { alive, failed, left };
  kind what = kind::alive;
  std::int32_t rank = 0;                     ///< failed: the rank that failed
  std::array<std::uint64_t, 2> published{};  ///< left: the sender's rounds, by lane
  char text[600] = {};                       ///< failed: why, from "rank"
};

/// How often notices are looked for.
inline constexpr std::chrono::milliseconds notice_interval{20};
/// How long a rank of a failed group tries to tell the others, and waits for them to leave.
inline constexpr std::chrono::milliseconds farewell{500};

/// Sleeps longer and longer: what comes soon is seen soon, and a core is not kept busy.
class backoff {
public:
  /// \returns how long it slept, without what others made of it.
  clock::duration operator()() {
    if (tries_++ < 100) {
      std::this_thread::yield();
      return {};
    }
    auto const before = clock::now();
    std::this_thread::sleep_for(next_);
    next_ = std::min<clock::duration>(next_ * 3 / 2, std::chrono::milliseconds{1});
    // While the whole group is suspended, time passes that must not count as waiting.
    return std::min<clock::duration>(clock::now() - before, 2 * notice_interval);
  }

private:
  int tries_ = 0;
  clock::duration next_ = std::chrono::microseconds{20};
};

/// What the ranks of a group tell each other at any time: that one of them lives, has failed or has left.
class notices {
public:
  notices(MPI_Comm of, int rank, int ranks, std::chrono::milliseconds silence)
      : rank_{rank},
        ranks_{ranks},
        silence_{silence},
        names_(static_cast<std::size_t>(ranks)),
        left_(static_cast<std::size_t>(ranks)) {
    {
      std::lock_guard const lock{calling()};
      through_ = duplicate(of);
      expect_notice();
    }
    living_ = std::thread{[this] { live(); }};
  }
  notices(notices const&) = delete;
  notices& operator=(notices const&) = delete;
  /// end() was called before.
  ~notices() = default;

  /// Waits until all ranks have left, at most `patience` and not if the group has failed; the last call.
  /// \returns whether MPI can be finalized without waiting for a rank that is gone.
  bool end(std::chrono::milliseconds patience) noexcept {
    auto const waits = [](clock::duration at_most, auto&& done) {
      clock::duration waited{0};
      for (backoff sleep; !done() && waited < at_most;) { waited += sleep(); }
    };
    waits(patience, [&] { return failed_ || all_have_left(); });
    // Who ends first may take the others with it: mpirun gives them a second.
    waits(farewell, [&] { return all_told() && all_have_left(); });
    {
      std::lock_guard const lock{mutex_};
      ending_ = true;
    }
    wakes_.notify_all();
    living_.join();
    std::lock_guard const lock{calling()};
    give_up(incoming_);
    if (!outbox_.empty()) {
      new std::list<sent>{std::move(outbox_)};  // MPI may still read it
      return false;
    }
    return !failed_ && all_have_left();
  }

  /// Tells what other ranks are called: "(process 12 on host a) ".
  void name(std::vector<std::string> names) {
    std::lock_guard const lock{mutex_};
    names_ = std::move(names);
  }

  [[nodiscard]] bool has_failed() const noexcept { return failed_; }
  void check() const {
    if (failed_) [[unlikely]] {
      std::lock_guard const lock{mutex_};
      fail(exit_code::rank_failed, why_);
    }
  }
  /// Fails the group with "rank <rank> <what>", and tells all ranks.
  void mark_failed(int rank, std::string_view what) noexcept {
    notice n{.what = notice::kind::failed, .rank = rank};
    try {
      auto const text = concat("rank ", rank, " ", what);
      std::copy_n(text.data(), std::min(text.size(), sizeof n.text - 1), n.text);
    } catch (...) {}  // no memory for the text
    if (take_failure(n)) {
      tell_all(n);
    }
  }

  /// Tells that this rank has published so many rounds, by lane, and publishes no more.
  void leave(std::array<std::uint64_t, 2> published) noexcept {
    {
      std::lock_guard const lock{mutex_};
      auto& own = left_[static_cast<std::size_t>(rank_)];
      if (std::exchange(own.has, true)) {
        return;
      }
    }
    tell_all({.what = notice::kind::left, .published = published});
  }
  /// A rank that has left before it published `rounds` in a lane; negative if there is none.
  [[nodiscard]] int left_before(std::uint64_t rounds, std::size_t lane) const {
    std::lock_guard const lock{mutex_};
    for (int r = 0; r < ranks_; ++r) {
      auto const& of = left_[static_cast<std::size_t>(r)];
      if (r != rank_ && of.has && of.published[lane] < rounds) {
        return r;
      }
    }
    return -1;
  }

private:
  struct departure {
    bool has = false;
    std::array<std::uint64_t, 2> published{};
  };
  struct sent {
    notice what;
    MPI_Request request;
  };

  /// Takes the first failure. \returns whether this was it.
  bool take_failure(notice const& n) noexcept {
    std::lock_guard const lock{mutex_};
    if (failed_) {
      return false;
    }
    try {
      why_.assign(n.text, ::strnlen(n.text, sizeof n.text));
    } catch (...) {}  // no memory for the text
    failed_ = true;
    return true;
  }
  void tell(int to, notice const& n) {
    outbox_.push_back({n, MPI_REQUEST_NULL});
    auto& last = outbox_.back();
    if (MPI_Isend(&last.what, sizeof last.what, MPI_BYTE, to, 0, through_, &last.request) != MPI_SUCCESS) {
      outbox_.pop_back();  // it is silent, too, from now on
    }
  }
  void tell_all(notice const& n) noexcept {
    try {
      std::lock_guard const lock{calling()};
      for (int r = 0; r < ranks_; ++r) {
        if (r != rank_) {
          tell(r, n);
        }
      }
    } catch (...) {}  // no memory: the others will miss this rank
  }
  bool all_told() {
    std::lock_guard const lock{calling()};
    outbox_.remove_if([](sent& one) {
      int done = 0;
      return MPI_Test(&one.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
    });
    return outbox_.empty();
  }
  bool all_have_left() const {
    std::lock_guard const lock{mutex_};
    return std::all_of(left_.begin(), left_.end(), [](departure const& d) { return d.has; });
  }

  void expect_notice() {
    succeeds(MPI_Irecv(&came_, sizeof came_, MPI_BYTE, MPI_ANY_SOURCE, 0, through_, &incoming_), "MPI_Irecv");
  }
  /// Takes the notices that have come. \returns whether there was one of rank `from`.
  bool take_notices(int from) {
    bool heard = false;
    while (true) {
      notice n;
      int source = 0;
      {
        std::lock_guard const lock{calling()};
        int done = 0;
        MPI_Status status;
        succeeds(MPI_Test(&incoming_, &done, &status), "MPI_Test");
        if (done == 0) {
          return heard;
        }
        n = came_;
        source = status.MPI_SOURCE;
        expect_notice();
      }
      heard = heard || source == from;
      if (n.what == notice::kind::failed) {
        take_failure(n);
      } else if (n.what == notice::kind::left) {
        std::lock_guard const lock{mutex_};
        left_[static_cast<std::size_t>(source)] = {true, n.published};
      }
    }
  }
  /// The nearest rank in steps of `step` that has not left; this one if there is none. By the holder of
  /// mutex_.
  [[nodiscard]] int neighbour(int step) const {
    int r = rank_;
    do { r = (r + step + ranks_) % ranks_; } while (r != rank_ && left_[static_cast<std::size_t>(r)].has);
    return r;
  }
  /// What the thread does: sends signs of life to the next rank, and expects those of the rank before.
  void live() {
    auto const interval = std::max<clock::duration>(notice_interval, silence_ / 10);
    auto next_sign = clock::now();
    clock::duration silent{0};
    int before = rank_;
    std::unique_lock lock{mutex_};
    while (!ending_) {
      auto const begin = clock::now();
      int const next = neighbour(1);
      bool const same = std::exchange(before, neighbour(-1)) == before;
      bool const expects = same && before != rank_ && !failed_;
      lock.unlock();
      try {
        if (take_notices(before) || !expects) {
          silent = {};
        } else if (silent > silence_) {
          mark_failed(before, concat(name_of(before), "gave no sign of life for ", silence_.count(),
                                     " ms: it is stopped, or its host is down or cut off"));
        }
        // Signs for a host that is cut off would pile up.
        if (all_told() && next != rank_ && begin >= next_sign) {
          next_sign = begin + interval;
          std::lock_guard const call{calling()};
          tell(next, {});
        }
      } catch (std::exception const& e) { mark_failed(rank_, concat("failed: ", e.what())); }
      lock.lock();
      wakes_.wait_for(lock, notice_interval, [&] { return ending_; });
      // While the whole group is suspended, time passes that must not count as silence.
      silent += std::min<clock::duration>(clock::now() - begin, 2 * notice_interval);
    }
  }
  std::string name_of(int r) const {
    std::lock_guard const lock{mutex_};
    return names_[static_cast<std::size_t>(r)];
  }

  int rank_, ranks_;
  std::chrono::milliseconds silence_;

  // By the holder of calling():
  MPI_Comm through_ = MPI_COMM_NULL;
  MPI_Request incoming_ = MPI_REQUEST_NULL;
  notice came_;
  std::list<sent> outbox_;

  mutable std::mutex mutex_;  ///< of what follows
  std::condition_variable wakes_;
  std::atomic<bool> failed_{false};
  std::string why_;
  std::vector<std::string> names_;
  std::vector<departure> left_;
  bool ending_ = false;
  std::thread living_;
};

}  // namespace superoffload::mpi::detail
