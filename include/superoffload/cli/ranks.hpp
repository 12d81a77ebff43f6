// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/shared.hpp>
#include <superoffload/cpu/device.hpp>
#ifdef SUPEROFFLOAD_HAS_CUDA
#include <superoffload/cuda/device.hpp>
#ifdef SUPEROFFLOAD_HAS_NCCL
#include <superoffload/nccl/communicator.hpp>
#else
#include <superoffload/comm/single.hpp>
#endif
#endif

namespace superoffload::cli {

namespace detail {
template <class Device>
struct ranks_of;
template <>
struct ranks_of<cpu::device> {
  using kind = comm::shared;
};
#ifdef SUPEROFFLOAD_HAS_CUDA
template <>
struct ranks_of<cuda::device> {
#ifdef SUPEROFFLOAD_HAS_NCCL
  using kind = nccl::gpus;
#else
  using kind = comm::single;  // ranks are refused
#endif
};
#endif
}  // namespace detail

/// The group of ranks on such devices, as a sharding policy names it.
template <class Device>
using ranks = typename detail::ranks_of<Device>::kind;
template <class Device>
using rank_group = typename ranks<Device>::template communicator<Device>;

}  // namespace superoffload::cli
