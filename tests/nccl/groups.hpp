// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ranks with a GPU each. All of them run in processes forked from this one. This process must not use CUDA:
// its forks could not use it then.

#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>
#include <superoffload/nccl/communicator.hpp>

#include "comm/groups.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::test {

/// How many GPUs there are, asked once.
int gpus();

template <bool compares_first>
struct rank_on_gpu {
  template <class Body>
  static void run(comm::shared_segment& shared, int rank, Body& body) {
    cuda::device own{rank};
    nccl::communicator group{shared, rank, own, {.compares_first = compares_first}};
    body(own, group);
  }
};

/// A test that hangs ends before CTest ends it.
inline constexpr std::chrono::seconds gpu_patience{60};

template <bool compares_first>
struct processes_on_gpus : processes_of<rank_on_gpu<compares_first>> {
  processes_on_gpus() { this->settings.patience = gpu_patience; }
};
using gpu_processes = processes_on_gpus<false>;

/// Ranks as threads of one process.
template <bool compares_first>
struct threads_on_gpus {
  comm::shared_segment::settings settings{.piece_bytes = 4096, .patience = gpu_patience};

  template <class Body>
  std::vector<std::string> run(int ranks, Body body) {
    constexpr char separator = '\n';
    auto const said = child::start([&] {
                        threads_of<rank_on_gpu<compares_first>> threads{settings};
                        std::string all;
                        for (auto const& outcome : threads.run(ranks, body)) { all += outcome + separator; }
                        return all;
                      }).finish();
    std::vector<std::string> outcomes(1);
    for (char const c : said) {
      if (c == separator) {
        outcomes.emplace_back();
      } else {
        outcomes.back() += c;
      }
    }
    if (outcomes.back().empty()) {
      outcomes.pop_back();
    }
    outcomes.resize(static_cast<std::size_t>(ranks), said);
    return outcomes;
  }
};
using gpu_threads = threads_on_gpus<false>;

}  // namespace superoffload::test
