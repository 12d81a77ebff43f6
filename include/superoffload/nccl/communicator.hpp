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

/// Why this program cannot use NCCL, or an empty string. The first call, here or in a communicator, loads the
/// library.
std::string refusal();
/// The same for a version of NCCL (22809: 2.28.9).
std::string refusal_of(int version);
/// The same for the library `file`, a path or a name that the loader finds.
std::string refusal_of(std::string const& file);
/// The version, such as "2.28.9". Only valid without a refusal.
std::string version();

/// For a program that starts ranks on this host, before it has other threads: throws the `error` that each
/// rank would get: device when there is no NCCL or there are fewer GPUs than ranks, driver. A child process
/// finds it out.
void expect_gpus(int ranks);

/// The GPU of a rank: its local rank, or the only visible GPU where the launcher shows each rank just one.
/// Throws `error`: device when there are fewer GPUs than ranks, or none; driver.
int gpu_of(comm::environment const& run);

/// How a communicator uses NCCL; the same on all ranks.
struct options {
  /// Thread blocks of a collective at most, each on a multiprocessor that concurrent GEMMs do without; 0:
  /// NCCL chooses. Fewer are slower. NCCL_MAX_CTAS in the environment takes precedence.
  int max_ctas = 0;
  /// Whether NCCL gets an operation only when all ranks are known to queue the same, for which they
  /// synchronise on the host: NCCL's behaviour is undefined when they differ. Otherwise they are compared
  /// concurrently.
  bool compares_first = false;
  /// The bytes of each rank's part of a sum that are transferred at a time, a multiple of 8. Scratch memory
  /// of that size holds the part of each other rank.
  std::size_t sum_part_bytes = gpu::sum_part_bytes;
  /// Where hosts are joined by a network: that each has so many ranks, r / ranks_of_host being the host of
  /// rank r. Sums are then computed within the hosts first, which takes less of the network. 0 or 1: all
  /// ranks alike.
  int ranks_of_host = 0;
};

/// Ranks that have a GPU each and communicate by NCCL. Their membership is for communication on the host and
/// for a comm::watchdog: NCCL alone waits for ever for a rank that does not come, or makes another call.
///
/// Sums are computed on the GPU, in the order of the ranks (`sum.hpp`); NCCL transfers the parts. With
/// options::ranks_of_host the ranks of each host are summed in wide<From>, then the hosts in their order, and
/// what `to` holds is added last; the result is rounded once. NCCL is used without blocking calls; it takes
/// all its GPU memory in the constructor. When the group fails, every wait for the device throws
/// (cuda::device::mark_failed): the device is lost for its other users, too.
class communicator {
public:
  using stream = cuda::stream;  ///< of the rank's GPU

  /// Becomes the rank of a membership, with `device`, which outlives this. All ranks call it, with the same
  /// options. Throws `error`: bad_input for invalid options; device when a rank has no NCCL, another
  /// version of it or the GPU of another rank; the errors of a membership; rank_failed when not all ranks
  /// come.
  communicator(std::unique_ptr<comm::membership> member, cuda::device& device, options const& o = {});
  /// The same with the membership of rank `rank` of a segment, which outlives this.
  communicator(comm::shared_segment& shared, int rank, cuda::device& device, options const& o = {})
      : communicator{std::make_unique<comm::shared_membership>(shared, rank), device, o} {}
  communicator(communicator const&) = delete;
  communicator& operator=(communicator const&) = delete;
  ~communicator();

  [[nodiscard]] int rank() const noexcept;   ///< of the group, from 0
  [[nodiscard]] int ranks() const noexcept;  ///< of the group

  /// Returns once queued; with options::compares_first it waits until all ranks queue the same. \throws
  /// error(rank_failed) when the group has failed.
  void queue(stream& on, comm::all_gather const& a);
  /// The same for an exchange within groups, by NCCL's sends.
  void queue(stream& on, comm::all_to_all const& a);
  /// The same for a sum: NCCL transfers the parts and a kernel adds them in the order of the ranks.
  template <element From, element To>
  void queue(stream& on, comm::reduce_scatter<From, To> const& a);
  /// Bytes for the parts of all other ranks, about options::sum_part_bytes of each at most; and for the sums
  /// of the hosts.
  template <element From, element To>
  [[nodiscard]] std::size_t scratch_bytes(comm::reduce_scatter<From, To> const& a) const noexcept {
    auto const bytes = std::min(static_cast<std::size_t>(a.count) * sizeof(From), sum_part_bytes_);
    auto const part = part_bytes(bytes);
    if (!sums_within_hosts(a)) {
      auto const members = static_cast<std::size_t>(a.among.of(rank(), ranks()).number);
      return static_cast<std::size_t>(a.runs) * (members - 1) * part;
    }
    auto const all = static_cast<std::size_t>(ranks());
    auto const hosts = all / static_cast<std::size_t>(ranks_of_host_);
    return (all - hosts) * part + (2 * hosts - 1) * part_bytes(bytes / sizeof(From) * sizeof(wide<From>));
  }

  /// On the host, by the membership. \throws error(rank_failed) as comm::membership::exchange.
  void gather(void const* from, void* to, std::size_t bytes);
  /// On the host, by the membership. \throws error(rank_failed) as comm::membership::exchange.
  void barrier();
  /// Fails the group: waits of the other ranks, also those for their GPUs, end with this reason.
  void abort(std::string_view reason) noexcept;
  /// \throws error(rank_failed) when the group has failed.
  void check() const;

private:
  class group;

  /// Distance in bytes between the parts of other ranks.
  static constexpr std::size_t part_bytes(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

  /// Is a sum over all ranks, which are on several hosts?
  template <element From, element To>
  [[nodiscard]] bool sums_within_hosts(comm::reduce_scatter<From, To> const& a) const noexcept {
    return ranks_of_host_ != ranks() && a.among == comm::division{} && a.runs == 1;
  }
  /// Queues the transfers and kernels of a sum over all members alike, or within hosts first.
  template <element From, element To>
  void sum_over_members(stream& on, comm::reduce_scatter<From, To> const& a);
  template <element From, element To>
  void sum_over_hosts(stream& on, comm::reduce_scatter<From, To> const& a);

  std::unique_ptr<group> group_;
  std::size_t sum_part_bytes_;  ///< options::sum_part_bytes
  int ranks_of_host_;           ///< that of all ranks where sums are over all alike
};

static_assert(comm::communicator<communicator, cuda::device>);

/// Names the kind of group for policies such as zero::sharded: of ranks with a GPU each.
struct gpus {
  template <device_policy D>
    requires std::same_as<D, cuda::device>
  using communicator = nccl::communicator;  ///< for CUDA devices alone
};

}  // namespace superoffload::nccl

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/nccl/impl/communicator_inl.hpp>
#endif
