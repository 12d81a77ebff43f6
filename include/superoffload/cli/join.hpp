// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/agreement.hpp>
#include <superoffload/comm/environment.hpp>
#include <superoffload/comm/membership.hpp>
#include <superoffload/comm/rendezvous.hpp>
#include <superoffload/comm/shared_segment.hpp>
#include <superoffload/core/error.hpp>
#ifdef SUPEROFFLOAD_HAS_MPI
#include <superoffload/data/fingerprint.hpp>
#include <superoffload/mpi/membership.hpp>
#endif

#include <cstddef>
#include <memory>
#include <vector>

namespace superoffload::cli {

/// The membership of this process in its run: by shared memory where all ranks are of this host, else by MPI.
/// Throws `error`: bad_input for several hosts in a program that was built without MPI, or if hosts run
/// different programs, whose sums might differ; as comm::rendezvous and mpi::join.
inline std::unique_ptr<comm::membership> join(comm::environment const& run) {
  if (run.local_ranks == run.ranks) {
    return std::make_unique<comm::shared_membership>(comm::rendezvous(run), run.rank);
  }
#ifdef SUPEROFFLOAD_HAS_MPI
  auto member = mpi::join(run);
  auto const program = data::fingerprint_of("/proc/self/exe");
  comm::expect_same(*member, "the program", concat(program.bytes, " bytes, FNV-1a ", program.fnv1a));
  return member;
#else
  throw comm::agreed_error{
      exit_code::bad_input,
      concat(
          run.local_ranks, " of ", run.ranks, " ranks are of this host (", run.launcher,
          " says), and this program was built without MPI; expected a build with -D SUPEROFFLOAD_MPI=ON that "
          "mpirun or srun starts, or all ranks on one host"),
      run.rank == 0};
#endif
}

/// How many ranks each host has, if all have as many, in the order of the ranks; 0 for one host, or
/// otherwise. All ranks call it.
inline int ranks_of_host(comm::environment const& run, comm::membership& member) {
  struct place {
    int local_rank, local_ranks;
  };
  place const own{run.local_rank, run.local_ranks};
  std::vector<place> all(static_cast<std::size_t>(run.ranks));
  member.gather(&own, all.data(), sizeof own);
  int const each = all[0].local_ranks;
  for (int r = 0; r < run.ranks; ++r) {
    auto const& one = all[static_cast<std::size_t>(r)];
    if (one.local_ranks != each || one.local_rank != r % each) {
      return 0;
    }
  }
  return each < run.ranks && run.ranks % each == 0 ? each : 0;
}

}  // namespace superoffload::cli
