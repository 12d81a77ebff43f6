// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/watchdog.hpp>
#include <superoffload/core/boot_id.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/system_call.hpp>
#include <superoffload/cuda/check.hpp>
#include <superoffload/nccl/communicator.hpp>
#include <superoffload/nccl/sum.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cuda_runtime_api.h>
#include <deque>
#include <dlfcn.h>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <nccl.h>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace superoffload::nccl {

namespace detail {

using clock = std::chrono::steady_clock;

SUPEROFFLOAD_INLINE std::string text_of(int version) {
  return version < 10000 ? concat(version / 1000, ".", version / 100 % 10, ".", version % 100)
                         : concat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

/// The functions of the library that are used, named without "nccl".
struct library {
  decltype(&ncclGetVersion) GetVersion;
  decltype(&ncclGetUniqueId) GetUniqueId;
  decltype(&ncclGetErrorString) GetErrorString;
  decltype(&ncclGetLastError) GetLastError;
  decltype(&ncclCommInitRankConfig) CommInitRankConfig;
  decltype(&ncclCommGetAsyncError) CommGetAsyncError;
  decltype(&ncclCommFinalize) CommFinalize;
  decltype(&ncclCommDestroy) CommDestroy;
  decltype(&ncclCommAbort) CommAbort;
  decltype(&ncclGroupStart) GroupStart;
  decltype(&ncclGroupEnd) GroupEnd;
  decltype(&ncclAllGather) AllGather;
  decltype(&ncclSend) Send;
  decltype(&ncclRecv) Recv;
  int version = 0;
  std::string refused;  ///< why it is not used

  /// Loads the library `file`, a path or a name; returns why it cannot.
  std::string load(std::string const& file) {
    void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      return concat(file, " cannot be loaded (", printable(dlerror()), ")");
    }
    std::string missing;
    auto const find = [&](auto& function, char const* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
      if (function == nullptr && missing.empty()) {
        missing = name;
      }
    };
    find(GetVersion, "ncclGetVersion");
    find(GetUniqueId, "ncclGetUniqueId");
    find(GetErrorString, "ncclGetErrorString");
    find(GetLastError, "ncclGetLastError");
    find(CommInitRankConfig, "ncclCommInitRankConfig");
    find(CommGetAsyncError, "ncclCommGetAsyncError");
    find(CommFinalize, "ncclCommFinalize");
    find(CommDestroy, "ncclCommDestroy");
    find(CommAbort, "ncclCommAbort");
    find(GroupStart, "ncclGroupStart");
    find(GroupEnd, "ncclGroupEnd");
    find(AllGather, "ncclAllGather");
    find(Send, "ncclSend");
    find(Recv, "ncclRecv");
    std::string why;
    if (GetVersion != nullptr && GetVersion(&version) == ncclSuccess) {
      why = refusal_of(version);
    }
    if (why.empty() && !missing.empty()) {
      why = concat(file, " has no ", missing, ": is it NCCL?");
    }
    if (!why.empty()) {
      dlclose(handle);
    }
    return why;
  }
};

/// Loaded once: the library that the loader finds, or, if that is missing or refused, the one that the build
/// found.
SUPEROFFLOAD_INLINE library const& api() {
  static library const loaded = [] {
    library l{};
    l.refused = l.load("libnccl.so.2");
    if (!l.refused.empty() && l.load(SUPEROFFLOAD_NCCL_LIBRARY).empty()) {
      l.refused.clear();
    }
    if (!l.refused.empty()) {
      l.refused +=
          "; install NCCL 2.18 or newer, as pip's nvidia-nccl-cu13, or add its directory to LD_LIBRARY_PATH";
    }
    return l;
  }();
  return loaded;
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::string refusal() { return detail::api().refused; }

SUPEROFFLOAD_INLINE std::string refusal_of(std::string const& file) { return detail::library{}.load(file); }

SUPEROFFLOAD_INLINE std::string refusal_of(int version) {
  if (version >= 30000) {
    return concat("NCCL ", detail::text_of(version), " is of another major version: expected 2.18 or newer");
  }
  return version >= 21800 ? ""
                          : concat("NCCL ", detail::text_of(version), " is too old: expected 2.18 or newer");
}

SUPEROFFLOAD_INLINE std::string version() { return detail::text_of(detail::api().version); }

SUPEROFFLOAD_INLINE void expect_gpus(int ranks) {
  struct answer {
    int code = 0;
    char why[1024]{};
  };
  int ends[2];
  expect_call(::pipe2(ends, O_CLOEXEC) == 0, exit_code::io_failure, "no pipe");
  std::fflush(nullptr);  // or the child would write it, too
  auto const child = ::fork();
  if (child == 0) {  // a child process: what the driver starts and opens ends with it
    answer own;
    try {
      int const found = cuda::device::count();
      expect(found >= ranks, exit_code::device, "this host has ", found, " GPUs for ", ranks,
             " ranks: expected one for each (see nvidia-smi -L and CUDA_VISIBLE_DEVICES)");
      auto const refused = refusal();
      expect(refused.empty(), exit_code::device, refused);
    } catch (error const& e) {
      own.code = static_cast<int>(e.code());
      std::copy_n(e.what(), std::min(std::strlen(e.what()), sizeof own.why - 1), own.why);
    } catch (...) {}  // the ranks will report it
    bool const told = ::write(ends[1], &own, sizeof own) == static_cast<ssize_t>(sizeof own);
    ::_exit(told ? 0 : 1);
  }
  ::close(ends[1]);
  answer heard;
  bool const told = uninterrupted([&] { return ::read(ends[0], &heard, sizeof heard); }) ==
                    static_cast<ssize_t>(sizeof heard);
  ::close(ends[0]);
  expect(child > 0, exit_code::io_failure, "no process that asks for GPUs");
  uninterrupted([&] { return ::waitpid(child, nullptr, 0); });
  if (told && heard.code != 0) {
    throw error{static_cast<exit_code>(heard.code), heard.why};
  }
}

SUPEROFFLOAD_INLINE int gpu_of(comm::environment const& run) {
  int const found = cuda::device::count();
  if (found == 1 && run.local_ranks > 1) {
    return 0;  // the launcher may show each rank only its own
  }
  expect(run.local_rank < found, exit_code::device, "rank ", run.rank, " is number ", run.local_rank,
         " on its host, which has ", found, " GPUs for ", run.local_ranks,
         " ranks: expected one for each (see nvidia-smi -L and CUDA_VISIBLE_DEVICES)");
  return run.local_rank;
}

class communicator::group final : public comm::queueing_device {
public:
  group(std::unique_ptr<comm::membership> member, cuda::device& device, options const& o)
      : device_{&device}, member_{std::move(member)}, compares_first_{o.compares_first} {
    try {
      expect(o.sum_part_bytes > 0 && o.sum_part_bytes % sizeof(double) == 0, exit_code::bad_input, "sums of ",
             o.sum_part_bytes, " bytes at a time: expected a multiple of ", sizeof(double));
      expect(o.max_ctas >= 0, exit_code::bad_input, "collectives in ", o.max_ctas,
             " thread blocks: expected 1 or more, or 0 for as many as NCCL likes");
      expect(o.ranks_of_host >= 0 && (o.ranks_of_host == 0 || ranks() % o.ranks_of_host == 0),
             exit_code::bad_input, ranks(), " ranks, ", o.ranks_of_host,
             " on each host: expected as many on every host, or 0 for all ranks alike");
      connect(rendezvous(), o);
    } catch (std::exception const& e) {
      member_->abort(e.what());
      release();
      throw;
    }
    watchdog_.emplace(*member_, *this);
  }
  group(group const&) = delete;
  group& operator=(group const&) = delete;
  ~group() override {
    watchdog_.reset();
    // NCCL's communicators end together: every wait for this rank has to fail.
    member_->leave();
    if (handle_ != nullptr && !cuda::detail::device_is_lost()) {
      try {
        device_->activate();
        call("ncclCommFinalize", [&] { return detail::api().CommFinalize(handle_); });
        detail::api().CommDestroy(std::exchange(handle_, nullptr));
      } catch (...) {}  // it is aborted instead
    }
    release();
  }

  [[nodiscard]] comm::membership& member() noexcept { return *member_; }
  [[nodiscard]] int ranks() const noexcept { return member_->ranks(); }
  [[nodiscard]] int rank() const noexcept { return member_->rank(); }

  /// Lets `issue` queue the call `c` on the device.
  template <class Issue>
  void queue(cuda::stream& on, comm::call c, Issue&& issue) {
    member_->check();
    c.number = queued_++;
    c.note_range();
    watchdog_->expect(c);  // before issue: other ranks may wait for it
    if (compares_first_) {
      watchdog_->agree(c.number);
    }
    try {
      on.activate();
      issue();
      std::lock_guard const lock{mutex_};
      if (spare_.empty()) {
        spare_.emplace_back(*device_);
      }
      on.record(spare_.back());
      under_way_.push_back(std::move(spare_.back()));
      spare_.pop_back();
    } catch (std::exception const& e) {
      try {
        member_->fail_if_process_ended(concat("before ", c.text()));
      } catch (std::exception const&) {}  // no memory for the text
      member_->abort(e.what());
      // A thread of NCCL may still be about to launch, on a stream and for memory that the caller is about to
      // free.
      abort();
      member_->check();
      throw;
    }
  }

  void all_gather(cuda::stream& on, void const* from, void* to, std::size_t bytes) {
    if (bytes > 0) {
      call("ncclAllGather",
           [&] { return detail::api().AllGather(from, to, bytes, ncclUint8, handle_, on.handle()); });
    }
  }
  /// Sends each other member i of this rank's subset `times` parts of `bytes`, at from(i, 0), from(i, 1),
  /// ..., and receives what it sends at to(i, 0), ...
  template <class From, class To>
  void exchange(cuda::stream& on, comm::subset const& among, int times, std::size_t bytes, From&& from,
                To&& to) {
    if (bytes == 0 || among.number == 1) {
      return;
    }
    call("ncclSend and ncclRecv", [&] {
      auto const fails = [](ncclResult_t s) { return s != ncclSuccess && s != ncclInProgress; };
      auto status = detail::api().GroupStart();
      for (int i = 0; i < among.number; ++i) {
        int const r = among.rank(i);
        for (int k = 0; k < times && r != rank() && !fails(status); ++k) {
          status = detail::api().Send(from(i, k), bytes, ncclUint8, r, handle_, on.handle());
          if (!fails(status)) {
            status = detail::api().Recv(to(i, k), bytes, ncclUint8, r, handle_, on.handle());
          }
        }
      }
      auto const ended = detail::api().GroupEnd();
      return fails(status) ? status : ended;
    });
  }

private:
  /// What ranks tell each other on the host before NCCL works.
  struct greeting {
    char refused[512]{};
    char gpu[32]{};
    char machine[64]{};  ///< its boot id: GPUs of different machines may have equal addresses
    int version = 0;
    ncclUniqueId id{};
  };

  std::uint64_t completed() override {
    device_->activate();
    std::lock_guard const lock{mutex_};
    while (!under_way_.empty() && under_way_.front().done()) {
      spare_.push_back(std::move(under_way_.front()));
      under_way_.pop_front();
      ++completed_;
    }
    return completed_;
  }
  std::string failure() override {
    std::lock_guard const lock{mutex_};
    auto status = ncclSuccess;
    if (handle_ != nullptr && detail::api().CommGetAsyncError(handle_, &status) == ncclSuccess &&
        status != ncclSuccess && status != ncclInProgress) {
      return text_of_failure("an exchange", status);
    }
    return {};
  }
  void abort() noexcept override {
    try {
      member_->check();
    } catch (error const& why) {
      try {
        device_->mark_failed(why);
      } catch (...) {}  // no memory: queue() still reports it
    }
    release();
  }

  /// Ends all waits for other ranks. When it returns, on any thread, NCCL no longer uses anything that it was
  /// given.
  void release() noexcept {
    std::lock_guard const ending{releasing_};
    std::unique_lock lock{mutex_};
    released_ = true;
    auto* const handle = std::exchange(handle_, nullptr);
    lock.unlock();
    if (handle != nullptr && !cuda::detail::device_is_lost()) {
      cudaSetDevice(device_->ordinal());
      detail::api().CommAbort(handle);
    }
  }

  ncclUniqueId rendezvous() {
    greeting own;
    auto const put = [](auto& to, std::string const& text) {
      std::copy_n(text.data(), std::min(text.size(), sizeof to - 1), to);
    };
    auto why = refusal();
    if (why.empty() && rank() == 0) {
      if (auto const status = detail::api().GetUniqueId(&own.id); status != ncclSuccess) {
        why = text_of_failure("ncclGetUniqueId", status);
      }
    }
    put(own.refused, why);
    put(own.gpu, device_->pci_address());
    put(own.machine, boot_id());
    own.version = detail::api().version;
    auto const all = member_->greet(comm::membership::lane::queued, own);
    for (std::size_t r = 0; r < all.size(); ++r) {
      expect(all[r].refused[0] == 0, exit_code::device, "rank ", r,
             " has no NCCL: ", std::string_view{all[r].refused});
      expect(all[r].version == all[0].version, exit_code::device, "rank 0 has NCCL ",
             detail::text_of(all[0].version), " and rank ", r, " has ", detail::text_of(all[r].version),
             ": expected the same on all");
      for (std::size_t other = 0; other < r; ++other) {
        expect(std::strcmp(all[r].gpu, all[other].gpu) != 0 || all[r].gpu[0] == 0 ||
                   std::strcmp(all[r].machine, all[other].machine) != 0,
               exit_code::device, "ranks ", other, " and ", r, " have the same GPU (",
               std::string_view{all[r].gpu}, "): expected one for each rank");
      }
    }
    return all[0].id;
  }

  void connect(ncclUniqueId const& id, options const& o) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    if (o.max_ctas > 0) {
      config.maxCTAs = o.max_ctas;  // NCCL prefers the environment's
    }
    device_->activate();
    call("ncclCommInitRankConfig",
         [&] { return detail::api().CommInitRankConfig(&handle_, ranks(), id, rank(), &config); });
    // One operation of each kind, so that memory is taken and peers are connected now.
    constexpr std::size_t piece_bytes = std::size_t{256} << 10;
    buffer<cuda::device> const memory{*device_, piece_bytes * static_cast<std::size_t>(ranks())};
    auto* const pieces = memory.as<std::byte>();
    cuda::stream first{*device_};
    auto const piece = [&](int r) { return pieces + static_cast<std::size_t>(r) * piece_bytes; };
    auto const exchange_among = [&](comm::subset const& among) {
      exchange(
          first, among, 1, piece_bytes, [&](int, int) { return piece(rank()); },
          [&](int i, int) { return piece(among.rank(i)); });
    };
    cuda::event done{*device_};
    try {
      all_gather(first, piece(rank()), pieces, piece_bytes);
      if (int const of_host = o.ranks_of_host; of_host > 1) {
        exchange_among(comm::neighbours(of_host).of(rank(), ranks()));
        exchange_among(comm::counterparts(of_host).of(rank(), ranks()));
      } else {
        exchange_among(comm::division{}.of(rank(), ranks()));
      }
      first.record(done);
      await("the first exchange by NCCL", [&] { return done.done(); });
    } catch (...) {
      release();  // the stream's destructor waits for what is queued
      throw;
    }
    first.synchronize();
  }

  static std::string text_of_failure(std::string_view what, ncclResult_t status,
                                     ncclComm_t handle = nullptr) {
    auto const* const more = detail::api().GetLastError(handle);
    return concat("NCCL failed in ", what, ": ", std::string_view{detail::api().GetErrorString(status)},
                  more != nullptr && *more != 0 ? ": " : "", more != nullptr ? printable(more, 300) : "");
  }

  /// Calls NCCL and waits until it has finished the call, which may continue after it returns.
  template <class Function>
  void call(std::string_view name, Function&& function) {
    std::unique_lock lock{mutex_};
    auto status = released_ ? ncclSuccess : function();
    if (status == ncclInProgress) {
      lock.unlock();
      await(name, [&] {
        std::lock_guard const polling{mutex_};
        if (!released_) {
          auto const asked = detail::api().CommGetAsyncError(handle_, &status);
          status = asked == ncclSuccess ? status : asked;
        }
        return released_ || status != ncclInProgress;
      });
      lock.lock();
    }
    if (released_) {
      member_->check();
      fail(exit_code::internal, name, " after the end of the group");
    }
    if (status != ncclSuccess) {
      fail(exit_code::device, text_of_failure(name, status, handle_));
    }
  }

  /// Returns once `done()` is true; throws when the group fails meanwhile.
  template <class Done>
  void await(std::string_view what, Done&& done) {
    auto const began = detail::clock::now();
    for (int turn = 0; !done(); ++turn) {
      member_->check();
      if (turn < 1000) {
        std::this_thread::yield();
        continue;
      }
      member_->fail_if_process_ended(concat("during ", what));
      if (detail::clock::now() - began > member_->patience()) {
        member_->abort(concat(what, " took more than ", member_->patience().count(), " ms"));
      }
      std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
  }

  cuda::device* device_;
  std::unique_ptr<comm::membership> member_;
  bool compares_first_;
  std::uint64_t queued_ = 0;
  std::mutex releasing_;
  std::mutex mutex_;  ///< of the members below: one thread at a time calls NCCL
  ncclComm_t handle_ = nullptr;
  bool released_ = false;
  std::deque<cuda::event> under_way_;  ///< the ends of operations that are queued
  std::vector<cuda::event> spare_;
  std::uint64_t completed_ = 0;
  std::optional<comm::watchdog> watchdog_;
};

SUPEROFFLOAD_INLINE communicator::communicator(std::unique_ptr<comm::membership> member, cuda::device& device,
                                               options const& o)
    : group_{std::make_unique<group>(std::move(member), device, o)},
      sum_part_bytes_{o.sum_part_bytes},
      ranks_of_host_{o.ranks_of_host > 1 ? o.ranks_of_host : group_->ranks()} {}
SUPEROFFLOAD_INLINE communicator::~communicator() = default;

SUPEROFFLOAD_INLINE int communicator::rank() const noexcept { return group_->rank(); }
SUPEROFFLOAD_INLINE int communicator::ranks() const noexcept { return group_->ranks(); }

SUPEROFFLOAD_INLINE void communicator::queue(stream& on, comm::all_gather const& a) {
  auto const call =
      comm::call{.what = comm::call::kind::all_gather, .among = a.among, .runs = a.runs, .count = a.bytes};
  auto const members = a.among.of(rank(), ranks());
  group_->queue(on, call, [&] {
    if (members.number == ranks() && a.runs == 1) {
      return group_->all_gather(on, a.from, a.to, a.bytes);
    }
    auto const run = [&](int k) {
      return static_cast<std::byte const*>(a.from) + static_cast<std::size_t>(k) * a.bytes;
    };
    auto const place = [&](int i, int k) {
      return static_cast<std::byte*>(a.to) + static_cast<std::size_t>(k * members.number + i) * a.bytes;
    };
    int const own = members.index_of(rank());
    for (int k = 0; k < a.runs; ++k) {
      if (a.bytes > 0 && place(own, k) != run(k)) {
        on.copy(place(own, k), run(k), a.bytes);
      }
    }
    group_->exchange(on, members, a.runs, a.bytes, [&](int, int k) { return run(k); }, place);
  });
}

SUPEROFFLOAD_INLINE void communicator::queue(stream& on, comm::all_to_all const& a) {
  auto const call = comm::call{.what = comm::call::kind::all_to_all, .among = a.among, .count = a.bytes};
  group_->queue(on, call, [&] {
    auto const members = a.among.of(rank(), ranks());
    auto const offset = [&](int i) { return static_cast<std::size_t>(i) * a.bytes; };
    auto const* const from = static_cast<std::byte const*>(a.from);
    auto* const to = static_cast<std::byte*>(a.to);
    if (auto const own = offset(members.index_of(rank())); a.bytes > 0) {
      on.copy(to + own, from + own, a.bytes);
    }
    group_->exchange(
        on, members, 1, a.bytes, [&](int i, int) { return from + offset(i); },
        [&](int i, int) { return to + offset(i); });
  });
}

template <element From, element To>
void communicator::queue(stream& on, comm::reduce_scatter<From, To> const& a) {
  group_->queue(on,
                {.what = comm::call::kind::reduce_scatter,
                 .from = dtype_of<From>,
                 .to = dtype_of<To>,
                 .accumulates = a.accumulate,
                 .among = a.among,
                 .runs = a.runs,
                 .count = static_cast<std::uint64_t>(a.count)},
                [&] { sums_within_hosts(a) ? sum_over_hosts(on, a) : sum_over_members(on, a); });
}

template <element From, element To>
void communicator::sum_over_members(stream& on, comm::reduce_scatter<From, To> const& a) {
  auto const members = a.among.of(rank(), ranks());
  int const own = members.index_of(rank());
  auto const most = static_cast<std::int64_t>(sum_part_bytes_ / sizeof(From));
  for (std::int64_t begin = 0; begin < a.count; begin += most) {
    auto const count = std::min(most, a.count - begin);
    auto const bytes = static_cast<std::size_t>(count) * sizeof(From);
    auto const part = [&](int i, int k) {
      return a.from + static_cast<std::int64_t>(k * members.number + i) * a.count + begin;
    };
    auto const others = [&](int k) {  // scratch is [runs, members - 1, part]
      return static_cast<std::byte*>(a.scratch) +
             static_cast<std::size_t>(k * (members.number - 1)) * part_bytes(bytes);
    };
    group_->exchange(on, members, a.runs, bytes, part, [&](int i, int k) {
      return others(k) + static_cast<std::size_t>(i < own ? i : i - 1) * part_bytes(bytes);
    });
    for (int k = 0; k < a.runs; ++k) {
      launch(on, sum_of_parts<From, To>{.others = others(k),
                                        .part_bytes = part_bytes(bytes),
                                        .own = part(own, k),
                                        .rank = own,
                                        .ranks = members.number,
                                        .to = a.to + k * a.count + begin,
                                        .count = count,
                                        .accumulate = a.accumulate});
    }
  }
}

// Rank (h, i) is number i of host h. Within a host, i gets from each j what j has for all ranks (k, i), and
// sums it for each k; then (h, i) gets these sums for itself from all (k, i).
template <element From, element To>
void communicator::sum_over_hosts(stream& on, comm::reduce_scatter<From, To> const& a) {
  using total = wide<From>;
  int const hosts = ranks() / ranks_of_host_, host = rank() / ranks_of_host_, own = rank() % ranks_of_host_;
  auto const most = static_cast<std::int64_t>(sum_part_bytes_ / sizeof(From));
  auto const without = [](int i, int left_out) { return static_cast<std::size_t>(i < left_out ? i : i - 1); };
  for (std::int64_t begin = 0; begin < a.count; begin += most) {
    auto const count = std::min(most, a.count - begin);
    auto const part = part_bytes(static_cast<std::size_t>(count) * sizeof(From));
    auto const sum = part_bytes(static_cast<std::size_t>(count) * sizeof(total));
    auto* const parts = static_cast<std::byte*>(a.scratch);  // [hosts, ranks_of_host - 1, part]
    auto* const sums = parts + static_cast<std::size_t>(ranks() - hosts) * part;  // [hosts, sum]
    auto* const arrived = sums + static_cast<std::size_t>(hosts) * sum;           // [hosts - 1, sum]
    auto const parts_for = [&](int k) {
      return parts + static_cast<std::size_t>(k * (ranks_of_host_ - 1)) * part;
    };
    auto const part_for = [&](int i, int k) {
      return a.from + static_cast<std::int64_t>(k * ranks_of_host_ + i) * a.count + begin;
    };
    auto const sum_for = [&](int k, int = 0) { return sums + static_cast<std::size_t>(k) * sum; };
    group_->exchange(on, comm::neighbours(ranks_of_host_).of(rank(), ranks()), hosts,
                     static_cast<std::size_t>(count) * sizeof(From), part_for,
                     [&](int i, int k) { return parts_for(k) + without(i, own) * part; });
    for (int k = 0; k < hosts; ++k) {
      launch(on, sum_of_parts<From, total>{.others = parts_for(k),
                                           .part_bytes = part,
                                           .own = part_for(own, k),
                                           .rank = own,
                                           .ranks = ranks_of_host_,
                                           .to = reinterpret_cast<total*>(sum_for(k)),
                                           .count = count});
    }
    group_->exchange(on, comm::counterparts(ranks_of_host_).of(rank(), ranks()), 1,
                     static_cast<std::size_t>(count) * sizeof(total), sum_for,
                     [&](int k, int) { return arrived + without(k, host) * sum; });
    launch(on, sum_of_parts<total, To>{.others = arrived,
                                       .part_bytes = sum,
                                       .own = reinterpret_cast<total const*>(sum_for(host)),
                                       .rank = host,
                                       .ranks = hosts,
                                       .to = a.to + begin,
                                       .count = count,
                                       .accumulate = a.accumulate});
  }
}

#ifdef SUPEROFFLOAD_COMPILED
template void communicator::queue(stream&, comm::reduce_scatter<float, float> const&);
template void communicator::queue(stream&, comm::reduce_scatter<float, bfloat16> const&);
template void communicator::queue(stream&, comm::reduce_scatter<bfloat16, bfloat16> const&);
template void communicator::queue(stream&, comm::reduce_scatter<bfloat16, float> const&);
template void communicator::queue(stream&, comm::reduce_scatter<double, double> const&);
#endif

SUPEROFFLOAD_INLINE void communicator::gather(void const* from, void* to, std::size_t bytes) {
  group_->member().gather(from, to, bytes);
}
SUPEROFFLOAD_INLINE void communicator::barrier() { group_->member().barrier(); }
SUPEROFFLOAD_INLINE void communicator::abort(std::string_view reason) noexcept {
  group_->member().abort(reason);
}
SUPEROFFLOAD_INLINE void communicator::check() const { group_->member().check(); }

}  // namespace superoffload::nccl
