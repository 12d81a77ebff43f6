// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Runs that are interrupted, and go on on as many GPUs or on others.
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/zero/offloaded_or_sharded.hpp>

#include "nccl/groups.hpp"
#include "support/resumed_training.hpp"

#include <algorithm>

namespace {

using namespace superoffload;
using namespace superoffload::test::resumed;

struct ranks_on_gpus {
  using groups = test::gpu_processes;
  template <class P>
  using engine =
      train::engine<model::llama, cuda::device, P, zero::offloaded_or_sharded<nccl::gpus>, offload::super>;
};

std::vector<int> numbers_of_gpus() {
  std::vector numbers{1, 2, 4};
  std::erase_if(numbers, [](int n) { return n > test::gpus(); });
  return numbers;
}

TEST_SUITE("gpus") {
  TEST_CASE("a run that was interrupted on GPUs ends with the bits of one that was not") {
    for (int const ranks : numbers_of_gpus()) {
      check_every_step<ranks_on_gpus, precision::fp32>(ranks, {.name = "float32"}, 40, 19);
      check_every_step<ranks_on_gpus, precision::bf16>(
          ranks, {.name = "bf16, off the device", .offload = offload::mode::super}, 40, 13);
    }
  }

  TEST_CASE("state that some GPUs wrote is the same bits on any others") {
    auto const numbers = numbers_of_gpus();
    for (std::size_t i = 0; i < variants.size(); ++i) {
      for (int const writers : numbers) {
        if (i == 1 || writers == numbers[i % numbers.size()]) {
          check_state_moves<ranks_on_gpus>(variants[i], writers, numbers);
        }
      }
    }
  }

  TEST_CASE("a run that goes from one GPU to all, to two and back to one loses no state and no sample") {
    check_chain<ranks_on_gpus>(variants[1], {1, numbers_of_gpus().back(), 2, 1});
  }
}

}  // namespace
