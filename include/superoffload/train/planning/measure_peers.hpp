// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/agreement.hpp>
#include <superoffload/comm/communicator.hpp>
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

/// The sizes that exchanges are measured at, as far as that takes milliseconds.
struct peer_probe {
  std::int64_t shard = 1;                         ///< elements that a rank has of a unit
  std::int64_t rows = 1, inner = 1, columns = 1;  ///< of the product that runs beside it
};

namespace detail {

/// Gathers and reduces a unit, alone and beside products. All ranks do so at once.
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
    beside_each_other(gathered + reduced, peers);
    return peers;
  }

private:
  using clock = std::chrono::steady_clock;
  /// Seconds that a measurement may take about.
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
  /// Of a shard from now on.
  void size(std::int64_t shard) {
    shard_ = shard;
    part_ = zeros(shard);
    whole_ = zeros(shard * group_->ranks());
    scratch_ = buffer<D>{*device_, group_->scratch_bytes(comm::reduce_scatter<T>{.count = shard})};
  }

  void gather(std::int64_t elements) {
    group_->queue(transfer_, comm::all_gather{.from = part_.data(),
                                              .to = whole_.data(),
                                              .bytes = static_cast<std::size_t>(elements) * sizeof(T)});
  }
  void reduce() {
    group_->queue(transfer_, comm::reduce_scatter<T>{.from = whole_.template as<T>(),
                                                     .to = part_.template as<T>(),
                                                     .count = shard_,
                                                     .scratch = scratch_.data()});
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

  /// Of one of so many that are queued; the least of some runs, which ranks begin together.
  template <class Queue>
  double seconds_of_each(typename D::stream& stream, int times, Queue const& queue) {
    double least = std::numeric_limits<double>::infinity();
    for (int run = 0; run <= runs; ++run) {
      group_->barrier();
      auto const begin = clock::now();
      for (int i = 0; i < times; ++i) { queue(); }
      stream.synchronize();
      double const took = std::chrono::duration<double>(clock::now() - begin).count() / times;
      least = run == 0 ? least : std::min(least, took);  // the first one warms up
    }
    return least;
  }
  /// The same of exchanges, on the slowest rank: for what ranks must decide alike.
  template <class Queue>
  double slowest(Queue const& queue, int times) {
    return comm::max_over_ranks(*group_, seconds_of_each(transfer_, times, queue));
  }
  /// To the unit's size, as far as patience goes: the larger, the nearer an exchange comes to its rate.
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

  /// Exchanges and products that take about the same time each, at once. Each is slowed down until the other
  /// one ends. In the middle of some runs, for on a host that others use one may tell anything.
  void beside_each_other(double exchanged_in, offload::machine::peers_part& peers) {
    auto const exchange = [&] {
      gather(shard_);
      reduce();
    };
    int const gemms = times_of(seconds_of_each(compute_, 1, [&] { multiply(); }));
    int const exchanges = times_of(exchanged_in);
    double const computing = gemms * seconds_of_each(compute_, gemms, [&] { multiply(); });
    double const exchanging = exchanges * seconds_of_each(transfer_, exchanges, exchange);
    std::array<double, 5> of_exchange{}, of_compute{};
    for (std::size_t run = 0; run < of_exchange.size(); ++run) {
      timed_event exchange_begins{*device_}, exchange_ends{*device_}, compute_begins{*device_},
          compute_ends{*device_};
      drain_at_end const exchanged_all{transfer_};
      drain_at_end const computed_all{compute_};
      group_->barrier();
      transfer_.record(exchange_begins);
      compute_.record(compute_begins);
      for (int i = 0; i < std::max(exchanges, gemms); ++i) {
        if (i < exchanges) {
          exchange();
        }
        if (i < gemms) {
          multiply();
        }
      }
      transfer_.record(exchange_ends);
      compute_.record(compute_ends);
      transfer_.synchronize();
      compute_.synchronize();
      double const exchanged = exchange_ends.seconds_since(exchange_begins);
      double const computed = compute_ends.seconds_since(compute_begins);
      double const both = std::max(1e-9, std::min(exchanged, computed));
      of_exchange[run] = (exchanging - (exchanged - both)) / both;
      of_compute[run] = (computing - (computed - both)) / both;
    }
    auto const share = [](auto& all) {
      std::sort(all.begin(), all.end());
      return std::clamp(all[all.size() / 2], least_share, 1.0);
    };
    peers.beside_compute = share(of_exchange);
    peers.compute_beside = share(of_compute);
  }
  static constexpr double least_share = 0.05;
  using timed_event = typename D::timed_event;

  D* device_;
  C* group_;
  peer_probe p_;
  std::int64_t shard_ = 1;
  double tried_ = 0.0;  // s of one gathering, about
  buffer<D> part_, whole_, scratch_, input_, weight_, output_;
  typename D::stream transfer_, compute_;  // last: they work on the buffers
};

}  // namespace detail

/// How fast ranks exchange, and what exchanges and the device's work leave of each other, in some tens of
/// milliseconds. Every rank of the group calls this at the same time with the same sizes, and gets numbers of
/// its own.
template <element T, device_policy D, comm::communicator<D> C>
offload::machine::peers_part measure_peers(D& device, C& group, peer_probe const& p) {
  return detail::peer_measurement<T, D, C>{device, group, p}.run();
}

}  // namespace superoffload::train
