// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/comm/communicator.hpp>
#include <superoffload/comm/operations.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/zero/buffer_sizes.hpp>
#include <superoffload/zero/prefetcher.hpp>
#include <superoffload/zero/shard.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace superoffload::zero {

/// Bytes of shards of `elements` elements, one of each copy.
template <class Element>
std::size_t part_bytes(std::int64_t elements, weight_copies const& copies) {
  return static_cast<std::size_t>(copies.number() * elements) * sizeof(Element);
}

/// A rank's part of the weights, and the buffers that units are gathered into before they are used.
/// Collectives run on one separate stream, transfer(). Where there are several copies of the weights, a
/// unit's owners exchange its new shards once, before the unit is first gathered after its update.
///
/// Every rank makes the same calls in the same order, as for sharded_store, whose terms these are.
template <device_policy D, element T, comm::communicator<D> C>
class sharded_weights {
public:
  using stream_type = typename D::stream;  ///< of the device

  /// Bytes of a rank's part, without buffers.
  static std::size_t bytes(std::vector<autograd::unit_layout> const& units, weight_copies const& copies) {
    std::size_t sum = 0;
    for (auto const& u : units) { sum += part_bytes<T>(shard_elements(u, copies.ranks), copies); }
    return sum;
  }

  /// Weights are zero. `times` records the collectives on `track`; it may be null.
  sharded_weights(D& device, stream_type& compute, std::vector<autograd::unit_layout> const& units, C& group,
                  weight_copies const& copies, buffer_sizes<std::size_t> const& buffers, recorder<D>* times,
                  int track)
      : compute_{&compute},
        group_{&group},
        copies_{copies},
        times_{times},
        track_{track},
        memory_{device, bytes(units, copies)},
        written_{device},
        buffers_{device, compute, buffers} {
    drain_at_end const drained{compute};
    compute.fill_zero(memory_.data(), memory_.bytes());
    auto* next = memory_.template as<std::byte>();
    for (auto const& u : units) {
      auto const n = shard_elements(u, copies.ranks);
      parts_.push_back({.shards = reinterpret_cast<T*>(std::exchange(next, next + part_bytes<T>(n, copies))),
                        .elements = n,
                        .trains = u.trainable()});
    }
    changed();
  }

  /// Begins to gather the unit, if a buffer is free.
  void prefetch(int unit) { buffers_.fetch(unit, whole_bytes(unit), gather_of(unit)); }
  /// The whole unit, for work queued on the compute stream from now on.
  void const* acquire(int unit) { return buffers_.acquire(unit, whole_bytes(unit), gather_of(unit)); }
  void release(int unit) noexcept { buffers_.release(unit); }  ///< work queued later may not use it
  void forget(int unit) { buffers_.forget(unit); }             ///< its update comes next

  /// The rank's shard.
  [[nodiscard]] T* shard(int unit) const {
    return at(unit).shards + copies_.of(group_->rank()) * elements(unit);
  }
  /// Of the rank's shard, with padding.
  [[nodiscard]] std::int64_t elements(int unit) const { return at(unit).elements; }
  /// The stream of the collectives, which reads shards first.
  [[nodiscard]] stream_type& transfer() noexcept { return buffers_.transfer(); }

  /// Call on all ranks before a shard is written from outside a step: waits until nothing reads it.
  void expect_writes(int unit) {
    buffers_.drop(unit);
    at(unit).exchanged = false;
  }
  /// Later gathers see the work that is queued on the compute stream by now.
  void changed() {
    compute_->record(written_);
    for (auto& own : parts_) { own.exchanged = own.exchanged && !own.trains; }
  }

private:
  struct part {
    T* shards;  // of all copies: [copies, elements]
    std::int64_t elements;
    bool trains;
    bool exchanged = false;  // `shards` are those of the last update
  };

  [[nodiscard]] std::size_t shard_bytes(int unit) const {
    return static_cast<std::size_t>(elements(unit)) * sizeof(T);
  }
  [[nodiscard]] std::size_t whole_bytes(int unit) const {
    return shard_bytes(unit) * static_cast<std::size_t>(copies_.ranks);
  }
  auto gather_of(int unit) {
    return [this, unit](auto& transfer, void* to) {
      transfer.wait(written_);
      auto& own = at(unit);
      if (copies_.number() > 1 && !std::exchange(own.exchanged, true)) {
        record_span(times_, track_, transfer, "new weights of ", unit, [&] {
          group_->queue(transfer, comm::all_gather{.from = shard(unit),
                                                   .to = own.shards,
                                                   .bytes = shard_bytes(unit),
                                                   .among = copies_.between()});
        });
      }
      record_span(times_, track_, transfer, "weights of ", unit, [&] {
        group_->queue(transfer, comm::all_gather{.from = own.shards,
                                                 .to = to,
                                                 .bytes = shard_bytes(unit),
                                                 .among = copies_.within(),
                                                 .runs = copies_.number()});
      });
    };
  }

  [[nodiscard]] part& at(int unit) { return parts_[static_cast<std::size_t>(unit)]; }
  [[nodiscard]] part const& at(int unit) const { return parts_[static_cast<std::size_t>(unit)]; }

  stream_type* compute_;
  C* group_;
  weight_copies copies_;
  recorder<D>* times_;
  int track_;
  buffer<D> memory_;
  std::vector<part> parts_;
  typename D::event written_;  // the last write of the weights
  prefetcher<D> buffers_;      // last: its stream uses the memory above
};

}  // namespace superoffload::zero
