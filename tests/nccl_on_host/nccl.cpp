// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// A libnccl.so.2 with the functions that the component uses, between threads of one process whose GPUs are
// threads, too. It behaves like NCCL: calls return before they are done, and a thread of its own completes
// them. Ending a communicator that the others do not end, and an operation that they do not queue, wait for
// ever; only an abort ends such waits, without a result. NCCL's behaviour is undefined for operations that do
// not match; this one ends the program.
#include "gpu.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <nccl.h>
#include <string>
#include <thread>
#include <vector>

namespace {

/// An operation of one rank: the data for and from each rank, one part after the other.
struct operation {
  enum class kind { gather, exchange } what;
  std::size_t bytes;
  std::vector<std::vector<void const*>> from;
  std::vector<std::vector<void*>> to;

  [[nodiscard]] bool matches(operation const& other) const {
    return what == other.what && bytes == other.bytes;
  }
};

struct world {
  struct step {
    std::vector<operation const*> there;
    int came = 0, done = 0;
  };
  std::mutex mutex;
  std::condition_variable changed;
  int ranks = 0, joined = 0, finalizing = 0;
  std::map<std::uint64_t, step> steps;
};

struct member {
  std::shared_ptr<world> all;
  int rank = 0;
  std::uint64_t issued = 0;
  int polls = 0;  ///< during which the last call is not done
  bool finalizes = false;
  bool aborted = false;
  std::thread launching;  ///< launches the last operation on its stream
  std::atomic<bool> launched{true};

  void end_launch() {
    if (launching.joinable()) {
      launching.join();
    }
  }
};

std::mutex worlds_mutex;
std::map<std::string, std::shared_ptr<world>> worlds;
std::atomic<int> broken_rank{-1};
std::atomic<std::chrono::milliseconds> launch_time{};
std::atomic<int> asked_ctas{0};
thread_local operation* group = nullptr;
thread_local cudaStream_t group_stream = nullptr;
thread_local ncclComm_t group_comm = nullptr;

/// Runs on the stream: waits for the others, reads their data, waits until they have read this rank's.
void run(member& m, std::uint64_t number, operation const& own) {
  auto& w = *m.all;
  std::unique_lock lock{w.mutex};
  if (m.aborted) {
    return;
  }
  auto& s = w.steps[number];
  s.there.resize(static_cast<std::size_t>(w.ranks));
  s.there[static_cast<std::size_t>(m.rank)] = &own;
  ++s.came;
  w.changed.notify_all();
  auto const all_there = [&] {
    bool all = true;
    for (auto const* const other : s.there) {
      all = all && other != nullptr;
      if (other != nullptr && !other->matches(own)) {
        std::fputs("NCCL was given operations that do not match\n", stderr);
        std::abort();
      }
    }
    return all;
  };
  w.changed.wait(lock, [&] { return m.aborted || all_there(); });
  if (!m.aborted) {
    for (int r = 0; r < w.ranks; ++r) {
      auto const& from = s.there[static_cast<std::size_t>(r)]->from[static_cast<std::size_t>(m.rank)];
      auto const& to = own.to[static_cast<std::size_t>(r)];
      if (from.size() != to.size()) {
        std::fputs("NCCL was given another number of sends than of receives\n", stderr);
        std::abort();
      }
      for (std::size_t k = 0; k < to.size(); ++k) {
        if (from[k] != to[k]) {
          std::memcpy(to[k], from[k], own.bytes);
        }
      }
    }
    ++s.done;
    w.changed.notify_all();
    w.changed.wait(lock, [&] { return m.aborted || s.done == w.ranks; });
  }
  s.there[static_cast<std::size_t>(m.rank)] = nullptr;
  if (--s.came == 0) {
    w.steps.erase(number);
  }
}

}  // namespace

struct ncclComm {
  std::shared_ptr<member> m;
};

namespace {

ncclResult_t queue(ncclComm_t comm, cudaStream_t stream, operation op) {
  struct task {
    std::shared_ptr<member> m;
    std::uint64_t number;
    operation op;
  };
  auto& m = *comm->m;
  auto* const t = new task{comm->m, m.issued++, std::move(op)};
  m.end_launch();
  m.launched = false;
  ++stream->launches_to_come;
  m.launching = std::thread{[&m, t, stream] {
    std::this_thread::sleep_for(launch_time.load());
    stream->queue.enqueue([t] {
      run(*t->m, t->number, t->op);
      delete t;
    });
    --stream->launches_to_come;
    m.launched = true;
  }};
  m.polls = 2;
  return ncclInProgress;
}

std::size_t count_of(ncclComm_t comm) { return static_cast<std::size_t>(comm->m->all->ranks); }

}  // namespace

extern "C" {

/// Breaks the links of a rank; -1: of none.
void break_links_of(int rank) { broken_rank = rank; }
/// From now on its threads take this long to launch.
void launch_within(std::chrono::milliseconds time) { launch_time = time; }
/// The last communicator's limit of thread blocks.
int last_max_ctas() { return asked_ctas; }

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> next{0};
  *id = {};
  auto const text = std::to_string(++next);
  std::memcpy(id->internal, text.c_str(), text.size());
  return ncclSuccess;
}
char const* ncclGetErrorString(ncclResult_t) { return "remote error"; }
char const* ncclGetLastError(ncclComm_t) { return "the link is down"; }

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->blocking != 0) {
    return ncclInvalidArgument;  // no caller here may pass anything else
  }
  asked_ctas = config->maxCTAs;
  std::lock_guard const lock{worlds_mutex};
  auto& w = worlds[id.internal];
  if (!w) {
    w = std::make_shared<world>();
    w->ranks = ranks;
  }
  std::lock_guard const joining{w->mutex};
  ++w->joined;
  *comm = new ncclComm{std::make_shared<member>()};
  (*comm)->m->all = w;
  (*comm)->m->rank = rank;
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  auto& m = *comm->m;
  std::lock_guard const lock{m.all->mutex};
  bool const alone = m.all->joined < m.all->ranks || (m.finalizes && m.all->finalizing < m.all->ranks);
  bool const waits = alone || !m.launched || m.polls-- > 0;
  *error = broken_rank == m.rank ? ncclRemoteError : waits ? ncclInProgress : ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  auto& m = *comm->m;
  std::lock_guard const lock{m.all->mutex};
  ++m.all->finalizing;
  m.finalizes = true;
  m.polls = 2;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  comm->m->end_launch();
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    auto& m = *comm->m;
    std::lock_guard const lock{m.all->mutex};
    m.aborted = true;
    m.all->changed.notify_all();
  }
  comm->m->end_launch();
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclAllGather(void const* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  if (type != ncclUint8) {
    std::abort();
  }
  operation op{operation::kind::gather, count, {}, {}};
  for (std::size_t r = 0; r < count_of(comm); ++r) {
    op.from.push_back({from});
    op.to.push_back({static_cast<std::byte*>(to) + r * count});
  }
  return queue(comm, stream, op);
}
ncclResult_t ncclGroupStart() {
  group = new operation{operation::kind::exchange, 0, {}, {}};
  return ncclSuccess;
}
static void add(std::size_t count, ncclComm_t comm, cudaStream_t stream) {
  group->from.resize(count_of(comm));
  group->to.resize(count_of(comm));
  group->bytes = count;
  group_comm = comm;
  group_stream = stream;
}
ncclResult_t ncclSend(void const* from, std::size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  add(count, comm, stream);
  group->from[static_cast<std::size_t>(peer)].push_back(from);
  return ncclSuccess;
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  add(count, comm, stream);
  group->to[static_cast<std::size_t>(peer)].push_back(to);
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  std::unique_ptr<operation> const op{group};
  group = nullptr;
  return queue(group_comm, group_stream, *op);
}

}  // extern "C"
