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
#include <superoffload/mpi/membership.hpp>
#endif

#include <memory>

namespace superoffload::cli {

/// The membership of this process in its run: by shared memory where all ranks are of this host, else by MPI.
/// Throws `error`: bad_input for several hosts in a program that was built without MPI; as comm::rendezvous
/// and mpi::join.
inline std::unique_ptr<comm::membership> join(comm::environment const& run) {
  if (run.local_ranks == run.ranks) {
    return std::make_unique<comm::shared_membership>(comm::rendezvous(run), run.rank);
  }
#ifdef SUPEROFFLOAD_HAS_MPI
  return mpi::join(run);
#else
  throw comm::agreed_error{
      exit_code::bad_input,
      concat(run.local_ranks, " of ", run.ranks, " ranks are of this host (", run.launcher,
             " says), and this program was built without MPI; expected a build with -D SUPEROFFLOAD_MPI=ON, "
             "or all ranks on one host"),
      run.rank == 0};
#endif
}

}  // namespace superoffload::cli
