// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// GPUs simulated by threads of the host: the implementation behind the handles of cuda::stream and
// cuda::event.

#include <superoffload/cpu/stream.hpp>
#include <superoffload/cpu/threads.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>

struct CUstream_st {
  CUstream_st() = default;
  CUstream_st(CUstream_st const&) = delete;
  CUstream_st& operator=(CUstream_st const&) = delete;
  ~CUstream_st() {
    if (launches_to_come != 0) {
      std::fputs("a stream is destroyed that NCCL has yet to launch on\n", stderr);
      std::abort();
    }
  }

  std::atomic<int> launches_to_come{0};  ///< by threads of NCCL
  superoffload::cpu::thread_pool threads{1};
  superoffload::cpu::stream queue{threads};
};
struct CUevent_st {
  superoffload::cpu::event point;
};
