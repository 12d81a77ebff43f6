// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/mpi/impl/notices_inl.hpp>
#include <superoffload/mpi/membership.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace superoffload::mpi {
namespace detail {

/// Memory for messages, at multiples of 64 bytes.
struct free_aligned {
  void operator()(std::byte* p) const noexcept { ::operator delete[](p, std::align_val_t{64}); }
};
using message_buffer = std::unique_ptr<std::byte[], free_aligned>;
SUPEROFFLOAD_INLINE message_buffer new_buffer(std::size_t bytes) {
  return message_buffer{static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{64}))};
}

/// What ranks must have in common, and what messages call them.
struct greeting {
  static constexpr std::uint64_t expected_magic = 0x736f'6d70'6930'3032;  // change it with the messages
  std::uint64_t magic = expected_magic;
  std::uint64_t piece_bytes = 0;
  std::int64_t patience_ms = 0;
  std::int64_t silence_ms = 0;
  std::int32_t process = 0;
  char host[65] = {};
};

inline constexpr int call_tag = 0, run_tag = 1;

/// How long a rank that knows of a failure still waits for what others have sent before it.
inline constexpr std::chrono::milliseconds grace{200};

}  // namespace detail

/// MPI from its start to its end in this process.
class membership::session {
public:
  session() {
    int before = 0, level = 0;
    std::lock_guard const lock{detail::calling()};
    MPI_Initialized(&before);
    if (before != 0) {
      MPI_Query_thread(&level);
    } else {
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
      finalizes_ = true;
    }
    expect(level >= MPI_THREAD_SERIALIZED, exit_code::bad_input, "this MPI has no more than level ", level,
           " of threads: expected MPI_THREAD_SERIALIZED (", MPI_THREAD_SERIALIZED, ") or more");
  }
  session(session const&) = delete;
  session& operator=(session const&) = delete;
  ~session() {
    if (finalizes_) {
      std::lock_guard const lock{detail::calling()};
      MPI_Finalize();
    }
  }
  /// Leaves MPI as it is: to finalize it is to wait for ranks that are gone.
  void forsake() noexcept { finalizes_ = false; }

private:
  bool finalizes_ = false;
};

class membership::group {
public:
  group(MPI_Comm of, settings const& s, int rank, int ranks)
      : s_{s},
        rank_{rank},
        ranks_{ranks},
        lanes_{new_lane(of, s.piece_bytes, ranks), new_lane(of, comm::detail::host_piece_bytes, ranks)},
        notices_{of, rank, ranks, s.silence} {}
  group(group const&) = delete;
  group& operator=(group const&) = delete;
  /// end() was called before.
  ~group() = default;

  /// Waits until all ranks have left, unless the group has failed; the last call. \returns whether MPI can be
  /// finalized without waiting for a rank that is gone.
  bool end() noexcept {
    leave();
    bool const well = notices_.end(s_.patience);
    std::lock_guard const lock{detail::calling()};
    for (auto& one : lanes_) { abandon(one); }
    return well;
  }

  [[nodiscard]] detail::notices& notices() noexcept { return notices_; }
  void leave() noexcept { notices_.leave({lanes_[0]->published, lanes_[1]->published}); }

  [[nodiscard]] std::byte* own_piece(lane l) noexcept { return of_lane(l).own.get(); }
  [[nodiscard]] std::byte const* run_of(lane l, int r) const noexcept {
    auto const& one = *lanes_[static_cast<std::size_t>(l)];
    return r == rank_ ? run_for(one, r) : one.received.get() + static_cast<std::size_t>(r) * one.piece_bytes;
  }

  void publish(lane l, comm::call const& c, content const& own) {
    auto& one = of_lane(l);
    one.mine = c;
    one.what = own;
    int failing = -1;
    std::string why;
    {
      std::lock_guard const lock{detail::calling()};
      auto* const call_bytes = reinterpret_cast<std::byte*>(&one.mine);
      auto const send = [&](std::byte const* from, std::size_t bytes, int to, int tag, MPI_Request& request) {
        note(MPI_Isend(from, static_cast<int>(bytes), MPI_BYTE, to, tag, one.through, &request), to, failing,
             why);
      };
      auto const receive = [&](std::byte* into, std::size_t bytes, int from, int tag, MPI_Request& request) {
        note(MPI_Irecv(into, static_cast<int>(bytes), MPI_BYTE, from, tag, one.through, &request), from,
             failing, why);
      };
      for (int r = 0; r < ranks_; ++r) {
        if (r == rank_) {
          continue;
        }
        auto const at = static_cast<std::size_t>(r);
        receive(reinterpret_cast<std::byte*>(&one.calls[at]), sizeof(comm::call), r, detail::call_tag,
                request(one, message::call_in, r));
        send(call_bytes, sizeof(comm::call), r, detail::call_tag, request(one, message::call_out, r));
        if (own.bytes != 0 && own.readers.has(r)) {
          receive(one.received.get() + at * one.piece_bytes, own.bytes, r, detail::run_tag,
                  request(one, message::run_in, r));
          send(run_for(one, r), own.bytes, r, detail::run_tag, request(one, message::run_out, r));
        }
      }
    }
    ++one.published;
    if (failing >= 0) {
      notices_.mark_failed(failing, why);
    }
  }

  void await_all(lane l) {
    auto& one = of_lane(l);
    detail::clock::duration waited{0}, since_failure{0};
    for (detail::backoff sleep;;) {
      if (completes(one)) {
        return;
      }
      auto const slept = sleep();
      waited += slept;
      if (notices_.has_failed()) {
        since_failure += slept;
        if (since_failure > detail::grace) {
          notices_.check();
        }
      } else {
        fail_if_gone(l, one);
        if (waited > s_.patience) {
          notices_.mark_failed(first_missing(one), concat("did not come to ", one.mine.text(), " within ",
                                                          s_.patience.count(), " ms, where rank ", rank_,
                                                          " waits for it: it hangs, or does something else"));
        }
      }
    }
  }

private:
  /// The messages of a round between two ranks.
  enum class message : std::uint8_t { call_in, call_out, run_in, run_out };
  static constexpr std::size_t messages = 4;

  struct lane_state {
    lane_state(std::size_t piece, std::size_t ranks)
        : piece_bytes{piece},
          own{detail::new_buffer(piece)},
          received{detail::new_buffer(ranks * piece)},
          calls(ranks),
          requests(messages * ranks, MPI_REQUEST_NULL) {}

    MPI_Comm through = MPI_COMM_NULL;
    std::size_t piece_bytes;
    detail::message_buffer own;       ///< [piece_bytes]
    detail::message_buffer received;  ///< [ranks, piece_bytes]
    comm::call mine;
    content what;
    std::vector<comm::call> calls;            ///< of the other ranks
    std::vector<MPI_Request> requests;        ///< [messages, ranks]
    std::atomic<std::uint64_t> published{0};  ///< rounds
  };
  static std::unique_ptr<lane_state> new_lane(MPI_Comm of, std::size_t piece, int ranks) {
    auto made = std::make_unique<lane_state>(piece, static_cast<std::size_t>(ranks));
    std::lock_guard const lock{detail::calling()};
    made->through = detail::duplicate(of);
    return made;
  }
  [[nodiscard]] lane_state& of_lane(lane l) noexcept { return *lanes_[static_cast<std::size_t>(l)]; }
  [[nodiscard]] MPI_Request& request(lane_state& one, message m, int r) const noexcept {
    return one.requests[static_cast<std::size_t>(m) * static_cast<std::size_t>(ranks_) +
                        static_cast<std::size_t>(r)];
  }
  static std::byte const* run_for(lane_state const& one, int r) noexcept {
    return one.own.get() + static_cast<std::size_t>(one.what.readers.index_of(r)) * one.what.distance;
  }

  static void note(int status, int rank, int& failing, std::string& why) {
    if (status != MPI_SUCCESS && failing < 0) {
      failing = rank;
      why = concat("cannot be reached: ", detail::text_of(status));
    }
  }
  /// Ends what a failed round has left. Sends cannot be ended: MPI may still read their memory.
  void abandon(std::unique_ptr<lane_state>& one) noexcept {
    bool sends = false;
    for (int r = 0; r < ranks_; ++r) {
      for (auto const m : {message::call_in, message::run_in}) { detail::give_up(request(*one, m, r)); }
      for (auto const m : {message::call_out, message::run_out}) {
        if (auto& going = request(*one, m, r); going != MPI_REQUEST_NULL) {
          sends = true;
          MPI_Request_free(&going);
        }
      }
    }
    if (sends) {
      static_cast<void>(one.release());
    }
  }

  /// Whether the round is complete. Compares the calls that have come.
  bool completes(lane_state& one) {
    bool all = true;
    int failing = -1;
    std::string why;
    {
      std::lock_guard const lock{detail::calling()};
      for (auto const m : {message::call_in, message::call_out, message::run_in, message::run_out}) {
        for (int r = 0; r < ranks_ && failing < 0; ++r) {
          auto& going = request(one, m, r);
          if (going == MPI_REQUEST_NULL) {
            continue;
          }
          if (m == message::run_in && request(one, message::call_in, r) != MPI_REQUEST_NULL) {
            all = false;
            continue;  // a run is looked at when its call has been compared: it may have another size
          }
          int done = 0;
          note(MPI_Test(&going, &done, MPI_STATUS_IGNORE), r, failing, why);
          all = all && done != 0;
          auto const& theirs = one.calls[static_cast<std::size_t>(r)];
          if (m == message::call_in && done != 0 && !one.mine.same_as(theirs)) {
            failing = r;
            why = concat("called ", theirs.text(), " where rank ", rank_, " called ", one.mine.text(),
                         ": ranks must make the same calls in the same order");
          }
        }
      }
    }
    if (failing >= 0) {
      notices_.mark_failed(failing, why);
      notices_.check();
    }
    return all;
  }
  [[nodiscard]] int first_missing(lane_state& one) const {
    for (auto const m : {message::call_in, message::run_in, message::call_out, message::run_out}) {
      for (int r = 0; r < ranks_; ++r) {
        if (request(one, m, r) != MPI_REQUEST_NULL) {
          return r;
        }
      }
    }
    return rank_;
  }
  void fail_if_gone(lane l, lane_state const& one) {
    if (int const gone = notices_.left_before(one.published, static_cast<std::size_t>(l)); gone >= 0) {
      notices_.mark_failed(
          gone, concat("has left before ", one.mine.text(), ", where rank ", rank_, " waits for it"));
    }
  }

  settings s_;
  int rank_, ranks_;
  std::array<std::unique_ptr<lane_state>, 2> lanes_;  ///< queued, host
  detail::notices notices_;
};

namespace detail {
SUPEROFFLOAD_INLINE int number_in(MPI_Comm group, int (*ask)(MPI_Comm, int*)) {
  std::lock_guard const lock{calling()};
  int number = 0;
  succeeds(ask(group, &number), "MPI_Comm_rank and MPI_Comm_size");
  return number;
}
}  // namespace detail

SUPEROFFLOAD_INLINE membership::membership(MPI_Comm of, settings const& s) : membership{of, s, nullptr} {}

SUPEROFFLOAD_INLINE membership::membership(MPI_Comm of, settings const& s, std::unique_ptr<session> keeps)
    : comm::membership{detail::number_in(of, MPI_Comm_rank), detail::number_in(of, MPI_Comm_size),
                       s.piece_bytes, s.patience},
      session_{std::move(keeps)} {
  expect(s.piece_bytes >= 4096 && s.piece_bytes <= (std::size_t{1} << 30), exit_code::bad_input, "pieces of ",
         s.piece_bytes, " bytes: expected 4096 to 1 GiB");
  expect(s.patience.count() > 0 && s.silence.count() > 0, exit_code::bad_input, "a patience of ",
         s.patience.count(), " ms and ", s.silence.count(), " ms of silence: expected more than 0");
  group_ = std::make_unique<group>(of, s, rank(), ranks());
  try {
    meet(s);
  } catch (std::exception const& e) {
    abort(e.what());
    end();
    throw;
  }
}

SUPEROFFLOAD_INLINE void membership::meet(settings const& s) {
  detail::greeting own{.piece_bytes = s.piece_bytes,
                       .patience_ms = s.patience.count(),
                       .silence_ms = s.silence.count(),
                       .process = ::getpid()};
  ::gethostname(own.host, sizeof own.host - 1);
  auto const all = comm::membership::greet(lane::host, own);
  std::vector<std::string> names;
  for (std::size_t r = 0; r < all.size(); ++r) {
    auto const& other = all[r];
    expect(other.magic == own.magic && other.piece_bytes == own.piece_bytes &&
               other.patience_ms == own.patience_ms && other.silence_ms == own.silence_ms,
           exit_code::rank_failed, "rank ", r, " has another version of the program, or other settings");
    names.push_back(concat("(process ", other.process, " on host ",
                           printable({other.host, ::strnlen(other.host, sizeof other.host)}), ") "));
  }
  group_->notices().name(std::move(names));
}

SUPEROFFLOAD_INLINE membership::~membership() { end(); }

SUPEROFFLOAD_INLINE void membership::end() noexcept {
  if (!group_->end() && session_) {
    session_->forsake();
  }
}

SUPEROFFLOAD_INLINE std::byte const* membership::run_of(lane l, int r) const noexcept {
  return group_->run_of(l, r);
}
SUPEROFFLOAD_INLINE std::byte* membership::own_piece(lane l) noexcept { return group_->own_piece(l); }
SUPEROFFLOAD_INLINE void membership::publish(lane l, comm::call const& c, content const& own) {
  group_->publish(l, c, own);
}
SUPEROFFLOAD_INLINE void membership::await_all(lane l, comm::call const&) { group_->await_all(l); }
SUPEROFFLOAD_INLINE void membership::leave() noexcept { group_->leave(); }
SUPEROFFLOAD_INLINE void membership::check() const { group_->notices().check(); }
SUPEROFFLOAD_INLINE void membership::mark_failed(int r, std::string_view what) const noexcept {
  group_->notices().mark_failed(r, what);
}

SUPEROFFLOAD_INLINE std::unique_ptr<comm::membership> join(comm::environment const& run,
                                                           membership::settings const& s) {
  auto keeps = std::make_unique<membership::session>();
  int const rank = detail::number_in(MPI_COMM_WORLD, MPI_Comm_rank);
  int const ranks = detail::number_in(MPI_COMM_WORLD, MPI_Comm_size);
  expect(rank == run.rank && ranks == run.ranks, exit_code::bad_input, run.launcher,
         " says that this is rank ", run.rank, " of ", run.ranks, ", and MPI that it is rank ", rank, " of ",
         ranks, ": expected a start by the mpirun of this MPI, or by srun with --mpi=pmix");
  return std::unique_ptr<comm::membership>{new membership{MPI_COMM_WORLD, s, std::move(keeps)}};
}

}  // namespace superoffload::mpi
