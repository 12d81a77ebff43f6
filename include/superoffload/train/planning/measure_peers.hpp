// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/agreement.hpp>
#include <superoffload/comm/communicator.hpp>
#include <superoffload/comm/division.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/kernel/gemm.hpp>
#include <superoffload/offload/planning/machine.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace superoffload::train {

/// The sizes at which collectives are measured. They are reduced if a measurement would take more than
/// milliseconds.
struct peer_probe {
  std::int64_t shard = 1;  ///< elements of a rank's shard of a unit
  /// @{
  /// Of the GEMM that runs beside the collectives: Y [rows, columns] = X [rows, inner] W^T.
  std::int64_t rows = 1, inner = 1, columns = 1;
  /// @}
  int ranks_of_host = 0;  ///< as offload::machine::peers_part::ranks_of_host
};

namespace detail {

/// Gathers and reduces a unit, alone and beside GEMMs. All ranks do so at the same time.
template <element T, device_policy D, comm::communicator<D> C>
class peer_measurement {
public:
  peer_measurement(D& device, C& group, peer_probe const& p)
      : device_{&device}, group_{&group}, p_{p}, transfer_{urgent_stream(device)}, compute_{device} {
    p_.rows = std::min(p_.rows, most_rows);
    size(std::min<std::int64_t>(p_.shard, first_try));
    input_ = zeros(p_.rows * p_.inner);
    weight_ = zeros(p_.columns * p_.inner);
    output_ = zeros(p_.rows * p_.columns);
  }
  ~peer_measurement() {
    drain(transfer_);
    drain(compute_);
  }
  peer_measurement(peer_measurement const&) = delete;
  peer_measurement& operator=(peer_measurement const&) = delete;

  offload::machine::peers_part run() {
    comm::abort_on_exception const guard{*group_};
    offload::machine::peers_part peers;
    peers.latency = seconds_of_each(transfer_, small, [&] { gather(1); });
    grow();
    auto const others = static_cast<double>(shard_) * sizeof(T) * (group_->ranks() - 1);
    auto const rate = [&](double seconds) {
      return others / std::max(seconds - peers.latency, 0.1 * seconds);
    };
    double const gathered = slowest([&] { gather(shard_); }, times_of(tried_));
    peers.all_gather = rate(gathered);
    double const reduced = slowest([&] { reduce(); }, times_of(tried_));
    peers.reduce_scatter = rate(reduced);
    peers.ranks_of_host = p_.ranks_of_host;
    if (p_.ranks_of_host > 0) {
      peers.within_hosts = rates_among(comm::neighbours(p_.ranks_of_host));
      peers.between_hosts = rates_among(comm::counterparts(p_.ranks_of_host));
    }
    beside_each_other(gathered + reduced, peers);
    return peers;
  }

private:
  using clock = std::chrono::steady_clock;
  /// About the seconds that a measurement may take.
  static constexpr double patience = 5e-3;
  static constexpr std::int64_t first_try = 1 << 15, most_rows = 4096;
  static constexpr int small = 32, runs = 3;

  buffer<D> zeros(std::int64_t count) {
    buffer<D> b{*device_, static_cast<std::size_t>(count) * sizeof(T)};
    drain_at_end const drained{compute_};
    compute_.fill_zero(b.data(), b.bytes());
    compute_.synchronize();
    return b;
  }
  /// Allocates buffers for shards of `shard` elements.
  void size(std::int64_t shard) {
    shard_ = shard;
    part_ = zeros(shard);
    whole_ = zeros(shard * group_->ranks());
    scratch_ = buffer<D>{*device_, group_->scratch_bytes(comm::reduce_scatter<T>{.count = shard})};
  }

  void gather(std::int64_t elements, comm::division const& among = {}) {
    group_->queue(transfer_, comm::all_gather{.from = part_.data(),
                                              .to = whole_.data(),
                                              .bytes = static_cast<std::size_t>(elements) * sizeof(T),
                                              .among = among});
  }
  void reduce(comm::division const& among = {}) {
    group_->queue(transfer_, comm::reduce_scatter<T>{.from = whole_.template as<T>(),
                                                     .to = part_.template as<T>(),
                                                     .count = shard_,
                                                     .scratch = scratch_.data(),
                                                     .among = among});
  }
  /// Of subsets of the ranks, all of which work at the same time. A subset of one rank is as fast as a copy.
  offload::machine::collective_rates rates_among(comm::division const& among) {
    offload::machine::collective_rates rates;
    rates.latency = seconds_of_each(transfer_, small, [&] { gather(1, among); });
    auto const members = among.of(group_->rank(), group_->ranks()).number;
    auto const sent = static_cast<double>(shard_) * sizeof(T) * std::max(1, members - 1);
    auto const rate = [&](double seconds) { return sent / std::max(seconds - rates.latency, 0.1 * seconds); };
    rates.all_gather = rate(slowest([&] { gather(shard_, among); }, times_of(tried_)));
    rates.reduce_scatter = rate(slowest([&] { reduce(among); }, times_of(tried_)));
    return rates;
  }
  void multiply() {
    launch(compute_, kernel::gemm<T>{.a = input_.template as<T>(),
                                     .b = weight_.template as<T>(),
                                     .c = output_.template as<T>(),
                                     .m = p_.rows,
                                     .n = p_.columns,
                                     .k = p_.inner,
                                     .transpose_b = true});
  }

  /// Seconds of one of `times` queued operations: the shortest of some runs, which ranks begin together.
  template <class Queue>
  double seconds_of_each(typename D::stream& stream, int times, Queue const& queue) {
    double least = std::numeric_limits<double>::infinity();
    for (int run = 0; run <= runs; ++run) {
      group_->barrier();
      auto const begin = clock::now();
      for (int i = 0; i < times; ++i) { queue(); }
      stream.synchronize();
      double const took = std::chrono::duration<double>(clock::now() - begin).count() / times;
      least = run == 0 ? least : std::min(least, took);  // the first run warms up
    }
    return least;
  }
  /// The same for collectives, on the slowest rank: ranks must make the same decisions.
  template <class Queue>
  double slowest(Queue const& queue, int times) {
    return comm::max_over_ranks(*group_, seconds_of_each(transfer_, times, queue));
  }
  /// Grows the shard towards the unit's size, as far as patience allows: larger collectives come nearer to
  /// their rate.
  void grow() {
    while (true) {
      tried_ = slowest([&] { gather(shard_); }, 1);
      auto const next =
          std::min(static_cast<std::int64_t>(static_cast<double>(shard_) * patience / tried_), p_.shard);
      if (next < 2 * shard_) {
        return;
      }
      size(next);
    }
  }
  static int times_of(double seconds) {
    return static_cast<int>(std::clamp(std::ceil(patience / seconds), 1.0, 1000.0));
  }

  /// Runs collectives and GEMMs of about the same time concurrently. Each slows the other down until one
  /// ends. Takes the median of some runs, since other programs on the host disturb single runs.
  void beside_each_other(double seconds_of_collectives, offload::machine::peers_part& peers) {
    auto const collect = [&] {
      gather(shard_);
      reduce();
    };
    int const gemms = times_of(seconds_of_each(compute_, 1, [&] { multiply(); }));
    int const collectives = times_of(seconds_of_collectives);
    double const computing = gemms * seconds_of_each(compute_, gemms, [&] { multiply(); });
    double const collecting = collectives * seconds_of_each(transfer_, collectives, collect);
    std::array<double, 5> of_collectives{}, of_compute{};
    for (std::size_t run = 0; run < of_collectives.size(); ++run) {
      timed_event collectives_begin{*device_}, collectives_end{*device_}, compute_begins{*device_},
          compute_ends{*device_};
      drain_at_end const collected_all{transfer_};
      drain_at_end const computed_all{compute_};
      group_->barrier();
      transfer_.record(collectives_begin);
      compute_.record(compute_begins);
      for (int i = 0; i < std::max(collectives, gemms); ++i) {
        if (i < collectives) {
          collect();
        }
        if (i < gemms) {
          multiply();
        }
      }
      transfer_.record(collectives_end);
      compute_.record(compute_ends);
      transfer_.synchronize();
      compute_.synchronize();
      double const collected = collectives_end.seconds_since(collectives_begin);
      double const computed = compute_ends.seconds_since(compute_begins);
      double const both = std::max(1e-9, std::min(collected, computed));
      of_collectives[run] = (collecting - (collected - both)) / both;
      of_compute[run] = (computing - (computed - both)) / both;
    }
    auto const share = [](auto& all) {
      std::sort(all.begin(), all.end());
      return std::clamp(all[all.size() / 2], least_share, 1.0);
    };
    peers.beside_compute = share(of_collectives);
    peers.compute_beside = share(of_compute);
  }
  static constexpr double least_share = 0.05;
  using timed_event = typename D::timed_event;

  D* device_;
  C* group_;
  peer_probe p_;
  std::int64_t shard_ = 1;
  double tried_ = 0.0;  // about the s of one gather
  buffer<D> part_, whole_, scratch_, input_, weight_, output_;
  typename D::stream transfer_, compute_;  // last: they work on the buffers
};

}  // namespace detail

/// Measures the rates of collectives, and how much collectives and the device's work slow each other down.
/// Takes some tens of milliseconds. Every rank of the group calls this at the same time with the same sizes;
/// each gets its own numbers.
template <element T, device_policy D, comm::communicator<D> C>
offload::machine::peers_part measure_peers(D& device, C& group, peer_probe const& p) {
  return detail::peer_measurement<T, D, C>{device, group, p}.run();
}

}  // namespace superoffload::train
