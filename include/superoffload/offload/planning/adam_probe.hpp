// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/core/memory_account.hpp>
#include <superoffload/core/state_format.hpp>
#include <superoffload/cpu/pinned_threads.hpp>
#include <superoffload/cpu/state_memory.hpp>
#include <superoffload/kernel/adamw.hpp>
#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/scheduling/adam_task.hpp>
#include <superoffload/offload/state/adam_workers.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace superoffload::offload::detail {

/// Measures CPU Adam on the state of buckets, with the threads that a run will have.
class adam_probe {
public:
  /// Takes as many buckets as `state` elements are, and no more than fit `most_bytes`. `element_bytes`: of a
  /// working weight.
  adam_probe(adam_workers& workers, memory_account& account, std::int64_t count, std::int64_t state,
             state_format format, std::size_t element_bytes, std::size_t most_bytes);

  [[nodiscard]] std::int64_t buckets() const noexcept { return buckets_; }
  void run(adam_task task, std::int64_t bucket) { run(task, bucket, count_); }
  /// Seconds of a task without work.
  double latency();

private:
  [[nodiscard]] std::size_t pinned_bytes() const {
    return static_cast<std::size_t>(3 * count_) * element_bytes_;
  }
  [[nodiscard]] std::byte* state_of(std::int64_t bucket) const {
    return state_.as<std::byte>() + bucket * static_cast<std::int64_t>(of_bucket_);
  }
  template <element T>
  [[nodiscard]] T* pinned_of(std::int64_t bucket, int i) const {
    return pinned_.as<T>() + (3 * bucket + i) * count_;
  }

  void run(adam_task task, std::int64_t bucket, std::int64_t count);
  template <element T, state_format F>
  void run(adam_task task, std::int64_t bucket, std::int64_t count);

  static constexpr kernel::adamw_step numbers{0.9999F, 0.9F, 0.999F, 0.1F, 0.001F, 1e-5F, 1.0F, 1e-8F, 1.0F};

  cpu::pinned_threads* threads_;
  cpu::shared_slices pieces_{threads_->size()};
  state_format format_;
  std::size_t element_bytes_;
  std::int64_t count_;
  std::size_t of_bucket_;  // bytes
  std::int64_t buckets_;
  cpu::state_memory state_, pinned_;
};

/// CPU Adam's tasks in all buckets, taking turns.
class adam_laps {
public:
  adam_laps(adam_probe& adam, double latency) : adam_{&adam}, latency_{latency} {}

  /// One task in each bucket, another one in the next lap.
  void run(std::int64_t lap);
  /// Seconds per parameter of each task.
  [[nodiscard]] machine::adam_seconds per_parameter(std::int64_t of_bucket) const;
  /// Seconds of a lap, on average.
  [[nodiscard]] double of_lap() const;

private:
  adam_probe* adam_;
  double latency_;
  std::array<double, adam_tasks> seconds_{};
  std::array<std::int64_t, adam_tasks> runs_{};
  std::int64_t laps_ = 0;
};

}  // namespace superoffload::offload::detail

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/planning/impl/adam_probe_inl.hpp>
#endif
