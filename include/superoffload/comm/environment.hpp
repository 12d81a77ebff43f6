// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace superoffload::comm {

/// The rank of this process, from environment variables of its launcher. The first of these that is set
/// counts:
/// 1. RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE or LOCAL_SIZE: torchrun, DeepSpeed's launcher, and
///    `launch` of this library, which adds SUPEROFFLOAD_SEGMENT. MASTER_PORT names the job;
/// 2. OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK and _LOCAL_SIZE: Open MPI. PMIX_NAMESPACE names the job;
/// 3. PMI_RANK, PMI_SIZE, MPI_LOCALRANKID and MPI_LOCALNRANKS: MPICH and Intel MPI;
/// 4. SLURM_STEP_ID, SLURM_STEP_NUM_TASKS, SLURM_PROCID, SLURM_LOCALID, SLURM_NODEID and
///    SLURM_STEP_TASKS_PER_NODE: srun. SLURM_JOB_ID and SLURM_STEP_ID name the job. A Slurm batch script
///    without srun is one process, whatever SLURM_NTASKS says;
/// 5. PMIX_RANK and SUPEROFFLOAD_RANKS, all ranks on one host: plain PMIx, which gives no number of ranks.
/// SUPEROFFLOAD_JOB, where it is set, names the job instead.
struct environment {
  int rank = 0;              ///< from 0
  int ranks = 1;             ///< of the whole run, on all hosts
  int local_rank = 0;        ///< among the ranks of this host
  int local_ranks = 1;       ///< the ranks of this host
  std::string launcher;      ///< its name for messages, such as "srun"
  std::string job;           ///< names the run, uniquely on the host; may be empty
  std::string address = {};  ///< MASTER_ADDR: the host of rank 0; may be empty
  int port = 0;              ///< MASTER_PORT
  int shared_segment = -1;   ///< the descriptor of the segment that this process has from its launcher
};

/// The value of a variable, null where it is not set.
using variables = std::function<char const*(char const* name)>;

/// The rank of this process by the variables of `value_of`; nothing where no launcher has set any. Throws
/// `error` (bad_input) when a variable is not a whole number, is out of range or contradicts another one, or
/// when a variable that belongs to it is missing.
[[nodiscard]] std::optional<environment> read_environment(variables const& value_of);
/// By the environment of this process.
[[nodiscard]] std::optional<environment> read_environment();

}  // namespace superoffload::comm

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/comm/impl/environment_inl.hpp>
#endif
