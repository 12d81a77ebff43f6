// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace superoffload::comm {

/// Which rank this process is, as whoever started it says in environment variables. The first of these that
/// is there counts:
/// 1. RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE or LOCAL_SIZE: torchrun, DeepSpeed's launcher, and
/// `launch`
///    of this library, which adds SUPEROFFLOAD_SEGMENT. What ranks share with no other run of the host is
///    MASTER_PORT;
/// 2. OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK and _LOCAL_SIZE: Open MPI. They share PMIX_NAMESPACE;
/// 3. PMI_RANK, PMI_SIZE, MPI_LOCALRANKID and MPI_LOCALNRANKS: MPICH and Intel MPI;
/// 4. SLURM_STEP_ID, SLURM_STEP_NUM_TASKS, SLURM_PROCID, SLURM_LOCALID, SLURM_NODEID and
///    SLURM_STEP_TASKS_PER_NODE: srun. They share SLURM_JOB_ID and SLURM_STEP_ID. A batch script of Slurm's
///    that does not use srun is one process, whatever SLURM_NTASKS says;
/// 5. PMIX_RANK and SUPEROFFLOAD_RANKS, all of them on one host: PMIx by itself, which does not say how many.
/// SUPEROFFLOAD_JOB, where it is set, is what ranks share.
struct environment {
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;   ///< among those of this host
  int local_ranks = 1;  ///< of this host
  std::string launcher;
  std::string job;      ///< what the ranks of this run have in common with no other on the host; may be empty
  std::string address;  ///< MASTER_ADDR: the host of rank 0, where that is said
  int port = 0;         ///< MASTER_PORT
  int shared_segment = -1;  ///< the descriptor of a region that this process has from its launcher
};

/// The value of a variable, null where it is not set.
using variables = std::function<char const*(char const* name)>;

/// What `value_of` says of this process; nothing where no launcher has left anything. Throws `error`
/// (bad_input) when a variable is no whole number, out of range or in contradiction to another one, or when
/// the one that goes with it is missing.
[[nodiscard]] std::optional<environment> read_environment(variables const& value_of);
/// Of this process.
[[nodiscard]] std::optional<environment> read_environment();

}  // namespace superoffload::comm

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/comm/impl/environment_inl.hpp>
#endif
