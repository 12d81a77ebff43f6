// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// The collectives of CPU ranks on any hosts, beside MPI's own calls of the same sizes in the same run, one
// line of JSON each: mpirun --hostfile hosts mpi_bench. Bytes per second are those that leave or reach a
// rank. A reduce-scatter is compared with the bare exchange of its parts. The first line is that of a
// barrier.
#include <superoffload/comm/shared.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/mpi/membership.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace {

namespace so = superoffload;

constexpr int runs = 7;
/// Of one rank's part.
constexpr std::size_t sizes[] = {std::size_t{1} << 12, std::size_t{1} << 16, std::size_t{1} << 20,
                                 std::size_t{1} << 24};

void check(int status, char const* call) {
  so::expect(status == MPI_SUCCESS, so::exit_code::rank_failed, call, " failed");
}

int number_of(int (*ask)(MPI_Comm, int*)) {
  int number = 0;
  check(ask(MPI_COMM_WORLD, &number), "MPI_Comm_rank or MPI_Comm_size");
  return number;
}

/// Calls that take some milliseconds together.
int calls_of(std::size_t bytes) { return bytes < (1U << 18) ? 100 : bytes < (1U << 22) ? 10 : 2; }

/// Seconds of one call: the median of several runs.
template <class Barrier, class Call>
double seconds(int calls, Barrier&& barrier, Call&& call) {
  using clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int run = -1; run < runs; ++run) {  // once to warm up
    barrier();
    auto const begin = clock::now();
    call(calls);
    if (run >= 0) {
      times.push_back(std::chrono::duration<double>(clock::now() - begin).count() / calls);
    }
  }
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[runs / 2];
}

struct arrays {
  explicit arrays(std::size_t part, std::size_t ranks)
      : whole(ranks * part / sizeof(float), 1.0F), other(whole), mine(part / sizeof(float), 1.0F) {}
  std::vector<float> whole, other, mine;
};

/// Seconds of MPI's own calls.
struct plain_times {
  double barrier = 0;
  std::vector<double> gathered, exchanged;  ///< by size
};

plain_times measure_plain(std::size_t ranks) {
  auto const barrier = [] { check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); };
  plain_times times;
  times.barrier = seconds(100, barrier, [&](int calls) {
    for (int i = 0; i < calls; ++i) { barrier(); }
  });
  for (auto const part : sizes) {
    arrays a{part, ranks};
    auto const bytes = static_cast<int>(part);
    times.gathered.push_back(seconds(calls_of(part), barrier, [&](int calls) {
      for (int i = 0; i < calls; ++i) {
        check(MPI_Allgather(a.mine.data(), bytes, MPI_BYTE, a.whole.data(), bytes, MPI_BYTE, MPI_COMM_WORLD),
              "MPI_Allgather");
      }
    }));
    times.exchanged.push_back(seconds(calls_of(part), barrier, [&](int calls) {
      for (int i = 0; i < calls; ++i) {
        check(MPI_Alltoall(a.whole.data(), bytes, MPI_BYTE, a.other.data(), bytes, MPI_BYTE, MPI_COMM_WORLD),
              "MPI_Alltoall");
      }
    }));
  }
  return times;
}

using communicator = so::comm::shared_communicator<so::cpu::device>;

int hosts_of(communicator& group) {
  char name[65] = {};
  ::gethostname(name, sizeof name - 1);
  std::vector<char> all(sizeof name * static_cast<std::size_t>(group.ranks()));
  group.gather(name, all.data(), sizeof name);
  std::set<std::string> names;
  for (std::size_t r = 0; r < static_cast<std::size_t>(group.ranks()); ++r) {
    names.insert(&all[r * sizeof name]);
  }
  return static_cast<int>(names.size());
}

void measure(so::cpu::device& device, communicator& group, plain_times const& plain) {
  auto const ranks = static_cast<std::size_t>(group.ranks());
  int const hosts = hosts_of(group);
  auto const report = [&](std::string_view operation, std::size_t part, double time, double plain_time) {
    if (group.rank() != 0) {
      return;
    }
    auto const moved = static_cast<double>(part * (ranks - 1)) * 1e-9;
    std::printf("%s\n", so::concat("{\"operation\": \"", operation, "\", \"ranks\": ", ranks, ", \"hosts\": ",
                                   hosts, ", \"part_bytes\": ", part, ", \"microseconds\": ", 1e6 * time,
                                   ", \"gigabytes_per_second\": ", moved / time, ", \"mpi_microseconds\": ",
                                   1e6 * plain_time, ", \"share_of_mpi\": ", plain_time / time, "}")
                            .c_str());
    std::fflush(stdout);
  };
  auto const barrier = [&] { group.barrier(); };
  report("barrier", 0,
         seconds(100, barrier,
                 [&](int calls) {
                   for (int i = 0; i < calls; ++i) { group.barrier(); }
                 }),
         plain.barrier);
  so::cpu::stream stream{device};
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    auto const part = sizes[i];
    arrays a{part, ranks};
    auto const queued = [&](auto const& operation) {
      return seconds(calls_of(part), barrier, [&](int calls) {
        for (int n = 0; n < calls; ++n) { group.queue(stream, operation); }
        stream.synchronize();
      });
    };
    report("all_gather", part, queued(so::comm::all_gather{a.mine.data(), a.whole.data(), part}),
           plain.gathered[i]);
    report(
        "reduce_scatter beside an exchange", part,
        queued(so::comm::reduce_scatter<float>{
            .from = a.whole.data(), .to = a.mine.data(), .count = static_cast<std::int64_t>(a.mine.size())}),
        plain.exchanged[i]);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc > 1) {
    std::fprintf(stderr, "Usage: mpirun ... %s: times the collectives of CPU ranks, and MPI's own calls.\n",
                 argv[0]);
    return 2;
  }
  int level = 0;
  check(MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread");
  {
    auto const ranks = static_cast<std::size_t>(number_of(MPI_Comm_size));
    so::expect(level >= MPI_THREAD_SERIALIZED && ranks > 1, so::exit_code::bad_input, ranks,
               " ranks, threads of level ", level, ": expected two ranks or more, and MPI_THREAD_SERIALIZED");
    auto const plain = measure_plain(ranks);  // before another thread calls MPI
    so::cpu::device device{1};
    communicator group{
        std::make_unique<so::mpi::membership>(MPI_COMM_WORLD, so::mpi::membership::settings{})};
    so::comm::abort_on_exception const guard{group};
    measure(device, group, plain);
  }
  MPI_Finalize();
  return 0;
} catch (so::error const& e) {
  std::fprintf(stderr, "mpi_bench: error: %s\n", e.what());
  return static_cast<int>(e.code());
}
