// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// What it does needs a GPU; it is told where there is none.
#include <superoffload/comm/shared_segment.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/cuda/kernels.hpp>
#include <superoffload/nccl/communicator.hpp>

#include <cstdio>
#include <memory>

namespace so = superoffload;

int main() try {
  so::cuda::device device;
  so::comm::shared_segment shared{{.ranks = 1}};
  std::printf("%d rank\n", so::nccl::communicator{shared, 0, device}.ranks());
} catch (so::error const& e) {
  std::printf("no GPU: %s\n", e.what());
  return e.code() == so::exit_code::device || e.code() == so::exit_code::driver ? 0 : 1;
}
