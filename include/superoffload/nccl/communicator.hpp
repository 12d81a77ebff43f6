// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/communicator.hpp>
#include <superoffload/comm/environment.hpp>
#include <superoffload/comm/shared_segment.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/core/gpu.hpp>
#include <superoffload/cuda/device.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace superoffload::nccl {

/// Empty, or why NCCL cannot be used by this program: the library is loaded with the first question, here or
/// by a communicator.
std::string refusal();
/// The same of NCCL of such a version (22809: 2.28.9).
std::string refusal_of(int version);
/// The same of the library at `place`, a file or a name that the loader finds.
std::string refusal_of(std::string const& place);
/// Its version, such as "2.28.9". There is no refusal.
std::string version();

/// For who starts ranks on this host, before it has other threads: throws `error` as each of them would,
/// device when there is no NCCL or there are fewer GPUs than ranks, driver. It is found out in a process of
/// its own.
void expect_gpus(int ranks);

/// The GPU of a rank, by its place among the ranks of its host; the only one that the process sees, where
/// whoever has started it shows it no other. Throws `error`: device when there are fewer GPUs than ranks, or
/// none, driver.
int gpu_of(comm::environment const& run);

struct options {
  /// Thread blocks that an exchange runs in at most, each on a multiprocessor that products beside it do
  /// without; 0: as many as NCCL likes. Fewer exchange more slowly. NCCL_MAX_CTAS in the environment is heard
  /// instead.
  int max_ctas = 0;
  /// Whether NCCL is given an exchange only when all ranks are known to queue the same, for which they meet
  /// on the host: it may do anything with exchanges that differ. Otherwise they are compared beside the work.
  bool compares_first = false;
  /// Of each rank's part of a sum, the bytes that are exchanged at a time, a multiple of 8: those of the
  /// other ranks wait for it in as much scratch memory each.
  std::size_t sum_part_bytes = gpu::sum_part_bytes;
};

/// Ranks of one host that have a GPU each and exchange by NCCL. The region is for what the host exchanges,
/// and for a comm::watchdog: NCCL by itself waits for ever for a rank that does not come, or comes for
/// something else.
///
/// Sums are made on the GPU, in the order of the ranks (`sum.hpp`): parts are exchanged as they are. NCCL is
/// told to do nothing that blocks; what it takes of a GPU's memory it takes in the constructor. When the
/// group is failed, whatever waits for its device is told so (cuda::device::mark_failed): that device is lost
/// to whoever uses it, too.
class communicator {
public:
  using stream = cuda::stream;

  /// Takes place `rank` of the region, which outlives this, as `device` does. All ranks come here, with the
  /// same options. Throws `error`: bad_input for options that make no sense; device when a rank has no NCCL,
  /// has another version of it or the GPU of another rank; that of a membership; rank_failed when not all
  /// come.
  communicator(comm::shared_segment& shared, int rank, cuda::device& device, options const& o = {});
  communicator(communicator const&) = delete;
  communicator& operator=(communicator const&) = delete;
  ~communicator();

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int ranks() const noexcept;

  void queue(stream& on, comm::all_gather const& a);
  template <element From, element To>
  void queue(stream& on, comm::reduce_scatter<From, To> const& a);
  template <element From, element To>
  [[nodiscard]] std::size_t scratch_bytes(comm::reduce_scatter<From, To> const& a) const noexcept {
    return static_cast<std::size_t>(ranks() - 1) *
           part_bytes(std::min(static_cast<std::size_t>(a.count) * sizeof(From), most_of_a_part_));
  }

  void gather(void const* from, void* to, std::size_t bytes);
  void barrier();
  void abort(std::string_view reason) noexcept;
  void check() const;

private:
  class group;

  /// Parts of other ranks are this far from each other.
  static constexpr std::size_t part_bytes(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

  std::unique_ptr<group> group_;
  std::size_t most_of_a_part_;  ///< options::sum_part_bytes
};

static_assert(comm::communicator<communicator, cuda::device>);

/// Names the kind of group for policies such as zero::sharded: of ranks with a GPU each.
struct gpus {
  template <device_policy D>
    requires std::same_as<D, cuda::device>
  using communicator = nccl::communicator;
};

}  // namespace superoffload::nccl

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/nccl/impl/communicator_inl.hpp>
#endif
