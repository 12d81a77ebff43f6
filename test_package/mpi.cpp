// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Without a launcher it is a group of one.
#include <superoffload/core/error.hpp>
#include <superoffload/mpi/membership.hpp>

#include <cstdio>
#include <mpi.h>

namespace so = superoffload;

int main() try {
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  {
    so::mpi::membership group{MPI_COMM_WORLD, {}};
    group.barrier();
    std::printf("%d rank\n", group.ranks());
  }
  MPI_Finalize();
} catch (so::error const& e) {
  std::printf("%s\n", e.what());
  return 1;
}
