// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// GPUs that are threads of the host: what is behind the handles of cuda::stream and cuda::event here.

#include <superoffload/cpu/stream.hpp>
#include <superoffload/cpu/threads.hpp>

struct CUstream_st {
  superoffload::cpu::thread_pool threads{1};
  superoffload::cpu::stream queue{threads};
};
struct CUevent_st {
  superoffload::cpu::event point;
};
