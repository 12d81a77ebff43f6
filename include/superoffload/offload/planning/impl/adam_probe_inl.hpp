// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/device.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/kernel/deferred_adamw.hpp>
#include <superoffload/kernel/stored_state.hpp>
#include <superoffload/offload/planning/adam_probe.hpp>
#include <superoffload/offload/planning/least_seconds.hpp>
#include <superoffload/offload/state/state_arrays.hpp>
#include <superoffload/offload/state/state_bytes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace superoffload::offload::detail {

SUPEROFFLOAD_INLINE adam_probe::adam_probe(adam_workers& workers, memory_account& account, std::int64_t count,
                                           std::int64_t state, state_format format, std::size_t element_bytes,
                                           std::size_t most_bytes)
    : threads_{&workers.threads()},
      format_{format},
      element_bytes_{element_bytes},
      count_{(count + kernel::state_block - 1) / kernel::state_block * kernel::state_block},
      of_bucket_{state_layout{format, element_bytes}.whole(count_)},
      buckets_{std::max<std::int64_t>(
          1, std::min(state / count, static_cast<std::int64_t>(most_bytes / (of_bucket_ + pinned_bytes()))))},
      state_{account, static_cast<std::size_t>(buckets_) * of_bucket_, workers.node()},
      pinned_{account, static_cast<std::size_t>(buckets_) * pinned_bytes(), workers.node()} {
  drain_at_end const drained{*threads_};
  for (std::int64_t i = 0; i < buckets_; ++i) {
    threads_->fill_zero(state_of(i), static_cast<std::int64_t>(of_bucket_), 1);
    threads_->fill_zero(pinned_.as<std::byte>() + i * static_cast<std::int64_t>(pinned_bytes()), 3 * count_,
                        element_bytes_);
  }
  threads_->synchronize();
}

SUPEROFFLOAD_INLINE double adam_probe::latency() {
  return least_seconds([&] { run(adam_task::update, 0, kernel::state_block); }, 8);
}

template <element T, state_format F>
void adam_probe::run(adam_task task, std::int64_t bucket, std::int64_t count) {
  auto const [w, m, v] = whole_arrays<T, F>::at(state_of(bucket), count_);
  auto* const pending = pinned_of<T>(bucket, 0);
  auto* const gradient = pinned_of<T>(bucket, 1);
  auto* const weight = pinned_of<T>(bucket, 2);
  auto const share = [&](auto const& all) {
    pieces_.reset(all.count);
    threads_->run([&](int thread, int) {
      pieces_.each_piece(thread,
                         [&](cpu::slice const& piece) { cpu::run(all.slice(piece.begin, piece.size())); });
    });
  };
  switch (task) {
    case adam_task::update:
      return share(kernel::adamw_update<T, F>{w, m, v, gradient, gradient, count, numbers});
    case adam_task::speculate:
      return share(kernel::adamw_speculate<T, F>{w, m, v, gradient, weight, count, numbers});
    case adam_task::commit:
      return share(kernel::adamw_commit<T, F>{w, m, v, pending, count, numbers});
    case adam_task::commit_speculate:
      return share(
          kernel::adamw_commit_speculate<T, F>{w, m, v, pending, gradient, pending, count, numbers, numbers});
    case adam_task::commit_update:
      return share(
          kernel::adamw_commit_update<T, F>{w, m, v, pending, gradient, gradient, count, numbers, numbers});
    case adam_task::update_in_place:
      auto const split = split_arrays<T, F>::at(state_of(bucket), count_);
      return share(kernel::adamw<T, T, F>{weight, split.low, split.m, split.v, gradient, count, numbers});
  }
}

SUPEROFFLOAD_INLINE void adam_probe::run(adam_task task, std::int64_t bucket, std::int64_t count) {
  with_format(format_, [&]<state_format F>() {
    element_bytes_ == sizeof(float) ? run<float, F>(task, bucket, count)
                                    : run<bfloat16, F>(task, bucket, count);
  });
}

SUPEROFFLOAD_INLINE void adam_laps::run(std::int64_t lap) {
  for (std::int64_t bucket = 0; bucket < adam_->buckets(); ++bucket) {
    auto const task = static_cast<std::size_t>((lap + bucket) % adam_tasks);
    auto const begin = clock::now();
    adam_->run(static_cast<adam_task>(task), bucket);
    seconds_[task] += std::max(seconds_since(begin) - latency_, 1e-9);
    ++runs_[task];
  }
  ++laps_;
}

SUPEROFFLOAD_INLINE machine::adam_seconds adam_laps::per_parameter(std::int64_t of_bucket) const {
  machine::adam_seconds times{};
  for (std::size_t i = 0; i < times.size(); ++i) {
    times[i] = seconds_[i] / static_cast<double>(runs_[i] * of_bucket);
  }
  return times;
}

SUPEROFFLOAD_INLINE double adam_laps::of_lap() const {
  return std::accumulate(seconds_.begin(), seconds_.end(), 0.0) / static_cast<double>(laps_);
}

}  // namespace superoffload::offload::detail
