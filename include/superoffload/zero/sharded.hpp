// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/comm/communicator.hpp>
#include <superoffload/comm/division.hpp>
#include <superoffload/comm/single.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/described_device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/zero/buffer_sizes.hpp>
#include <superoffload/zero/gradient_buffers.hpp>
#include <superoffload/zero/gradient_layout.hpp>
#include <superoffload/zero/offloaded_units.hpp>
#include <superoffload/zero/shard.hpp>
#include <superoffload/zero/sharded_weights.hpp>
#include <superoffload/zero/sharding_policy.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace superoffload::zero {

/// Bytes of a whole unit's gradient of one micro-batch; 0 for a frozen unit.
template <element T>
std::size_t whole_gradient_bytes(autograd::unit_layout const& unit, int ranks) {
  auto const elements = unit.trainable() ? shard_elements(unit, ranks) * ranks : 0;
  return static_cast<std::size_t>(elements) * (keeps_wide<T>(unit, false) ? sizeof(wide<T>) : sizeof(T));
}

/// A rank's buffers for whole units.
struct whole_unit_buffers {
  buffer_sizes<std::size_t> weights,  ///< for gathered weights
      gradients;                      ///< for gradients before they are reduced
};
template <element T>
whole_unit_buffers buffers_of_rank(std::vector<autograd::unit_layout> const& units, int ranks,
                                   gather_buffers buffers) {
  std::vector<std::size_t> weights, gradients;
  for (auto const& u : units) {
    weights.push_back(whole_weight_bytes(u, ranks, sizeof(T)));
    gradients.push_back(whole_gradient_bytes<T>(u, ranks));
  }
  return {{weights, buffers.weights, buffers.tied_embeddings},
          {gradients, buffers.gradients, buffers.tied_embeddings}};
}

/// Weights and gradients in shards, one for each rank of a group (ZeRO-3). A unit's weights are gathered into
/// a buffer before each forward and backward. Its gradient is written to a buffer and reduce-scattered:
/// summed in the order of the ranks, of which each keeps its shard. Several micro-batches are reduced one by
/// one and added in wide<T>.
///
/// With several weight_copies (hybrid sharding), a unit is gathered among the ranks of a copy. Copies
/// exchange its new shards once, before it is first gathered after an update. That changes no bit. With
/// store_options::sums_in_copies, several micro-batches are summed in wide<T> among the ranks of each copy,
/// and then once over the copies, in their order.
///
/// Every rank makes the same calls in the same order, and the collectives follow from them alone. All
/// collectives run on one separate stream. The sink gets a shard's gradient at the next reduce() or at
/// settle(), so that the compute stream does not wait for a collective that has only just begun.
///
/// Shards of offloaded gradients take turns in separate buffers: one is overwritten when the sink has taken
/// its content. Weights cannot be offloaded, nor gradients of several micro-batches.
template <device_policy D, element T, comm::communicator<D> C>
class sharded_store {
public:
  using group_type = C;  ///< of the ranks

  /// The rank's device memory; the group is asked for the scratch of its collectives only. \throws
  /// error(internal) without a group, for offloaded weights, and for offloaded gradients that accumulate.
  static store_bytes bytes(std::vector<autograd::unit_layout> const& units, store_options const& o,
                           C const* group) {
    auto const need = needs_of(units, o, checked(group));
    return {.weights = need.shards + need.buffers.weights.total(),
            .gradients = need.gradients + need.sums + need.shard_buffers.total() + need.scratch +
                         need.buffers.gradients.total()};
  }

  /// `group` must not be null. `times` records the collectives and the device's waits for reduced gradients;
  /// it may be null.
  sharded_store(D& device, typename D::stream& stream, std::vector<autograd::unit_layout> const& units,
                store_options const& o, C* group, gradient_sink<typename D::stream> sink,
                recorder<D>* times = nullptr)
      : stream_{&stream},
        group_{&checked(group)},
        sink_{sink},
        times_{times},
        collective_track_{times == nullptr ? -1 : times->add_track(resource::collective, "between ranks")},
        wait_track_{times == nullptr ? -1 : times->add_track(resource::waiting, "device waits for sums")},
        copies_{weight_copies::among(group->ranks(), o.weight_ranks)},
        need_{needs_of(units, o, *group)},
        owned_{shards_of(units, group->rank(), group->ranks())},
        gradients_{device, need_.gradients + need_.sums},
        scratch_{device, need_.scratch},
        buffer_memory_{device, need_.buffers.gradients.total()},
        shard_buffers_{device, stream, need_.shard_buffers, need_.offloaded_gradients, false, sink},
        sequence_ranks_{o.sequence_ranks},
        exchange_ready_{device},
        exchanged_{device},
        weights_{device, stream, units, *group, copies_, need_.buffers.weights, times, collective_track_} {
    drain_at_end const drained{stream};
    stream.fill_zero(gradients_.data(), gradients_.bytes());
    auto* gradient = gradients_.template as<std::byte>();
    auto* sums = gradient + need_.gradients;
    auto* memory = buffer_memory_.template as<std::byte>();
    for (int i = 0; i < need_.buffers.gradients.buffers(); ++i) {
      gradient_buffers_.emplace_back(std::exchange(memory, memory + need_.buffers.gradients.of(i)),
                                     typename D::event{device}, typename D::event{device});
    }
    for (auto const& u : units) {
      auto const n = shard_elements(u, group->ranks());
      entry e{.whole_gradient = whole_gradient_bytes<T>(u, group->ranks()), .gradient = {}, .unwritten = {}};
      if (u.trainable()) {
        e.trains = true;
        e.whole_is_wide = keeps_wide<T>(u, false);
        e.gradient.is_wide = shard_is_wide(o.accumulates);
        e.gradient_offloaded = o.offloaded.gradient_of(u.id());
        if (!e.gradient_offloaded) {
          e.gradient.data = std::exchange(gradient, gradient + shard_gradient_bytes(n, o.accumulates));
        }
        if (sums_in_copies(o, copies_)) {
          e.sums = reinterpret_cast<wide<T>*>(std::exchange(sums, sums + part_bytes<wide<T>>(n, copies_)));
        }
        e.unwritten = unwritten(u, true);
        auto const padding = n * group->ranks() - u.elements();
        if (padding > 0) {
          e.unwritten.push_back({u.elements(), padding});
        }
      }
      entries_.push_back(std::move(e));
    }
  }

  /// Begins to gather the unit's weights, if a buffer is free. All ranks must call it alike.
  void prefetch(int unit, autograd::pass) noexcept {
    try {
      weights_.prefetch(unit);
    } catch (...) {}  // a device that failed says so at the next call
  }
  /// The unit's whole weights and, but for a plain forward, a buffer for its whole gradient, to be
  /// overwritten.
  autograd::unit_buffers acquire(int unit, autograd::pass p) {
    auto const& e = at(unit);
    void const* const weights = weights_.acquire(unit);
    acquired_ = unit;
    if (p == autograd::pass::forward) {
      return {.weights = weights};
    }
    return {weights, e.trains ? gradient_buffer_of(unit).memory : nullptr, e.whole_is_wide};
  }
  /// Work queued later may not use the weights.
  void release(int unit, autograd::pass) noexcept { weights_.release(unit); }

  /// Queues the reduction of the unit's gradient to shards. After the step's last micro-batch the sink gets
  /// the shard of the unit that was reduced before; settle() hands over the last one.
  void reduce(int unit) {
    auto& e = at(unit);
    if (!e.trains) {
      return;
    }
    auto& buffer = gradient_buffer_of(unit);
    unit_gradient const whole{buffer.memory, e.whole_is_wide};
    clear<T>(*stream_, whole, e.unwritten);
    auto& transfer = weights_.transfer();
    stream_->record(buffer.written);
    if (last_) {
      weights_.forget(unit);
      announce();
    }
    transfer.wait(buffer.written);
    auto sum = e.gradient;
    if (e.gradient_offloaded) {
      sum.data = shard_buffers_.acquire(unit, transfer);
    }
    whole.template with_type<T>([&]<class From>(From const* from) {
      if (e.sums != nullptr) {
        queue_sum(unit, from, e.sums, !first_, copies_.within(), copies_.number());
        if (last_) {
          queue_sum(unit, e.sums, static_cast<wide<T>*>(sum.data), false, copies_.between(), 1);
        }
        return;
      }
      sum.template with_type<T>(
          [&]<class To>(To const* to) { queue_sum(unit, from, const_cast<To*>(to), !first_, {}, 1); });
    });
    transfer.record(buffer.summed);
    buffer.unit = no_unit;
    buffer.was_used = true;
    if (last_) {
      summed_ = unit;
      summed_in_ = &buffer;
    }
  }
  /// Call after a step's last backward. The sink has the gradients of all units then.
  void settle() { announce(); }

  /// Exchanges parts of `bytes` with the ranks that share the rows: [sequence_ranks, bytes] each. Later work
  /// of the compute stream sees `to`. All collectives have one order, so this waits for gathers ahead of it.
  void exchange(void const* from, void* to, std::size_t bytes) {
    auto& transfer = weights_.transfer();
    stream_->record(exchange_ready_);
    transfer.wait(exchange_ready_);
    record_span(times_, collective_track_, transfer, "rows of heads in ", acquired_, [&] {
      group_->queue(transfer,
                    comm::all_to_all{
                        .from = from, .to = to, .bytes = bytes, .among = comm::neighbours(sequence_ranks_)});
    });
    transfer.record(exchanged_);
    stream_->wait(exchanged_);
  }

  /// Is the next micro-batch the step's last, after which gradients are final?
  void set_last_micro_batch(bool last) { first_ = std::exchange(last_, last); }

  /// This rank's shards as units of their own. weights() and gradient() belong to them.
  [[nodiscard]] std::vector<autograd::unit_layout> const& owned() const noexcept { return owned_; }
  [[nodiscard]] T* weights(int unit) const { return weights_.shard(unit); }  ///< the rank's shard
  /// The stream whose work reads a unit's weights first.
  [[nodiscard]] typename D::stream& reader(int) noexcept { return weights_.transfer(); }
  /// Call on all ranks before they are written from outside a step.
  void expect_writes(int unit) { weights_.expect_writes(unit); }
  /// Later gathers see the work that is queued on the compute stream by now.
  void weights_changed() { weights_.changed(); }
  /// The final gradient of the last step. Null for a frozen unit, and for an offloaded gradient whose buffer
  /// is taken by another.
  [[nodiscard]] unit_gradient gradient(int unit) const {
    auto g = at(unit).gradient;
    if (at(unit).gradient_offloaded) {
      g.data = shard_buffers_.memory_of(unit);
    }
    return g;
  }

private:
  static constexpr int no_unit = -1;

  struct needs {
    std::size_t shards = 0;  // of weights
    std::size_t gradients = 0, sums = 0, scratch = 0;
    whole_unit_buffers buffers;
    std::vector<std::size_t> offloaded_gradients;  // by unit, bytes of the shard; 0: it stays
    buffer_sizes<std::size_t> shard_buffers;
  };
  struct entry {
    std::size_t whole_gradient = 0;  // bytes
    bool trains = false;
    bool whole_is_wide = false;  // the gradient of the whole unit, of one micro-batch
    bool gradient_offloaded = false;
    unit_gradient gradient;   // the shard's; without data if offloaded
    wide<T>* sums = nullptr;  // of several micro-batches over the ranks of this copy: [copies, elements]
    std::vector<unit_range> unwritten;
  };
  struct gradient_buffer {
    gradient_buffer(std::byte* where, typename D::event w, typename D::event s)
        : memory{where}, written{std::move(w)}, summed{std::move(s)} {}
    std::byte* memory;
    typename D::event written, summed;
    int unit = no_unit;
    bool was_used = false;  // `summed` was recorded
  };

  /// The sum over ranks is rounded once. Only the sum over several micro-batches needs to be wide.
  static bool shard_is_wide(bool accumulates) { return accumulates && !std::is_same_v<T, wide<T>>; }
  static std::size_t shard_gradient_bytes(std::int64_t elements, bool accumulates) {
    return static_cast<std::size_t>(elements) * (shard_is_wide(accumulates) ? sizeof(wide<T>) : sizeof(T));
  }

  template <class Group>
  static Group& checked(Group* group) {
    expect(group != nullptr, exit_code::internal, "zero::sharded needs a group");
    return *group;
  }

  static bool sums_in_copies(store_options const& o, weight_copies const& copies) {
    return o.sums_in_copies && o.accumulates && copies.number() > 1;
  }

  static needs needs_of(std::vector<autograd::unit_layout> const& units, store_options const& o,
                        C const& group) {
    bool const accumulates = o.accumulates;
    auto const& f = o.offloaded;
    auto const ranks = group.ranks();
    expect(o.sequence_ranks >= 1 && ranks % o.sequence_ranks == 0, exit_code::internal, o.sequence_ranks,
           " ranks share rows, expected a divisor of ", ranks);
    expect(o.weight_ranks >= 0 && ranks % std::max(1, o.weight_ranks) == 0, exit_code::internal,
           o.weight_ranks, " ranks keep a copy of the weights, expected a divisor of ", ranks);
    expect(!f.any_weights() && (!f.any_gradient() || !accumulates), exit_code::bad_input,
           "a rank's store cannot offload weights, nor gradients of several micro-batches: expected neither");
    auto const copies = weight_copies::among(ranks, o.weight_ranks);
    needs all;
    all.buffers = buffers_of_rank<T>(units, ranks, o.buffers);
    all.shards = sharded_weights<D, T, C>::bytes(units, copies);
    for (auto const& u : units) {
      auto const count = shard_elements(u, ranks);
      auto& offloaded = all.offloaded_gradients.emplace_back();
      if (!u.trainable()) {
        continue;
      }
      (f.gradient_of(u.id()) ? offloaded : all.gradients) += shard_gradient_bytes(count, accumulates);
      bool const whole_is_wide = keeps_wide<T>(u, false);
      if (sums_in_copies(o, copies)) {
        all.sums += part_bytes<wide<T>>(count, copies);
        all.scratch =
            std::max({all.scratch, scratch_of(group, count, whole_is_wide, copies.within(), copies.number()),
                      scratch_of(group, count, true, copies.between(), 1)});
      } else {
        all.scratch = std::max(all.scratch, scratch_of(group, count, whole_is_wide, {}, 1));
      }
    }
    all.shard_buffers = {all.offloaded_gradients, f.gradient_buffers, o.buffers.tied_embeddings};
    return all;
  }

  static std::size_t scratch_of(C const& group, std::int64_t count, bool is_wide, comm::division const& among,
                                int runs) {
    return is_wide
               ? group.scratch_bytes(
                     comm::reduce_scatter<wide<T>>{.count = count, .among = among, .runs = runs})
               : group.scratch_bytes(comm::reduce_scatter<T>{.count = count, .among = among, .runs = runs});
  }

  /// Queues the sum of `runs` runs of the unit's elements over the members of a division.
  template <class From, class To>
  void queue_sum(int unit, From const* from, To* to, bool accumulate, comm::division const& among, int runs) {
    auto& transfer = weights_.transfer();
    record_span(times_, collective_track_, transfer, "gradient of ", unit, [&] {
      group_->queue(transfer, comm::reduce_scatter<From, To>{.from = from,
                                                             .to = to,
                                                             .count = weights_.elements(unit),
                                                             .accumulate = accumulate,
                                                             .scratch = scratch_.data(),
                                                             .among = among,
                                                             .runs = runs});
    });
  }

  /// The buffer that the unit's gradient is written to. A new one is the one whose reduction was queued
  /// longest ago.
  gradient_buffer& gradient_buffer_of(int unit) {
    for (auto& buffer : gradient_buffers_) {
      if (buffer.unit == unit) {
        return buffer;
      }
    }
    for (std::size_t i = 0; i < gradient_buffers_.size(); ++i) {
      auto const next = next_gradient_buffer_;
      auto& buffer = gradient_buffers_[next];
      next_gradient_buffer_ = (next + 1) % gradient_buffers_.size();
      if (buffer.unit == no_unit &&
          need_.buffers.gradients.suits(static_cast<int>(next), at(unit).whole_gradient)) {
        if (buffer.was_used) {
          stream_->wait(buffer.summed);
        }
        buffer.unit = unit;
        return buffer;
      }
    }
    fail(exit_code::internal, "the gradient of unit ", unit, " finds of all ", gradient_buffers_.size(),
         " buffers those for ", at(unit).whole_gradient,
         " bytes taken by gradients that are not reduced: expected a buffer for each");
  }

  /// Hands the unit that was reduced last to the sink.
  void announce() {
    if (summed_ != no_unit) {
      auto const unit = std::exchange(summed_, no_unit);
      record_span(times_, wait_track_, *stream_, "wait for ", unit,
                  [&] { stream_->wait(summed_in_->summed); });
      if (at(unit).gradient_offloaded) {
        shard_buffers_.finish(unit, gradient(unit));
      } else {
        sink_.ready(sink_.self, unit, at(unit).gradient);
      }
    }
  }

  [[nodiscard]] entry& at(int unit) { return entries_[static_cast<std::size_t>(unit)]; }
  [[nodiscard]] entry const& at(int unit) const { return entries_[static_cast<std::size_t>(unit)]; }

  typename D::stream* stream_;
  C* group_;
  gradient_sink<typename D::stream> sink_;
  recorder<D>* times_;
  int collective_track_, wait_track_;
  weight_copies copies_;
  needs need_;
  std::vector<autograd::unit_layout> owned_;
  buffer<D> gradients_, scratch_, buffer_memory_;
  std::vector<entry> entries_;
  std::vector<gradient_buffer> gradient_buffers_;
  std::size_t next_gradient_buffer_ = 0;
  gradient_buffers<D> shard_buffers_;
  int sequence_ranks_;
  typename D::event exchange_ready_, exchanged_;  // of the last exchange
  int acquired_ = 0;                              // last
  int summed_ = no_unit;                          // reduced, and not handed to the sink
  gradient_buffer* summed_in_ = nullptr;
  bool first_ = true, last_ = true;
  sharded_weights<D, T, C> weights_;  // last: its stream uses the buffers above
};

/// The policy: each rank has a shard of every unit's weights, gradient and optimizer state. `Comm` is the
/// kind of group: comm::single, comm::shared.
template <class Comm>
struct sharded {
  using policy_category = category::sharding;  ///< see core/policy.hpp
  static constexpr bool offloads = false;      ///< weights and gradients stay on the device
  static constexpr bool alone = false;         ///< an engine needs a group
  static constexpr bool shards = true;         ///< an engine can be a rank
  /// The store on device D, in element type T.
  template <device_policy D, element T>
  using store = sharded_store<D, T, typename Comm::template communicator<D>>;
};
static_assert(sharding_policy<sharded<comm::single>, described_device, bfloat16>);

}  // namespace superoffload::zero
