// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/buffer.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/gpu.hpp>
#include <superoffload/core/memory_account.hpp>
#include <superoffload/cuda/attention.hpp>
#include <superoffload/cuda/stream.hpp>
#include <superoffload/cuda/tuning.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace superoffload::cuda {

namespace detail {
struct host_memory;
}

/// One NVIDIA GPU. Allocating and releasing may wait for the whole GPU: do both outside of training steps.
class device {
public:
  using policy_category = category::device;  ///< see core/policy.hpp
  using stream = cuda::stream;               ///< an in-order queue of the GPU
  using event = cuda::event;                 ///< a point in a stream
  using timed_event = cuda::timed_event;     ///< an event that knows when it was reached

  /// How many GPUs this process can see. Throws `error` (driver or device) when there is none.
  static int count();

  /// Throws `error` (driver) when there is no driver or one too old for this CUDA runtime, and `error`
  /// (device) when there is no such GPU, it cannot be used, or this build has no kernels for its
  /// architecture.
  explicit device(int ordinal = 0);
  device(device const&) = delete;
  device& operator=(device const&) = delete;
  ~device();

  static std::string name() { return "cuda"; }                                    ///< in plans and messages
  static constexpr std::size_t logits_chunk_bytes = gpu::logits_chunk_bytes;      ///< see core/gpu.hpp
  static constexpr std::size_t gemm_workspace_bytes = gpu::gemm_workspace_bytes;  ///< see core/gpu.hpp
  static constexpr double flops_per_byte = gpu::flops_per_byte;                   ///< see core/gpu.hpp
  static constexpr double settling_time = gpu::settling_time;                     ///< see core/gpu.hpp

  [[nodiscard]] int ordinal() const noexcept { return ordinal_; }  ///< as CUDA numbers the visible GPUs
  /// The GPU's own name.
  [[nodiscard]] std::string const& model() const noexcept { return model_; }
  /// "cuda:0 (NVIDIA H200)".
  [[nodiscard]] std::string description() const;

  /// From compute capability 8.9 on: Ada, Hopper, Blackwell.
  [[nodiscard]] bool multiplies_float8() const;

  /// Free on the GPU now, whatever uses the rest, less what the CUDA libraries will still take for
  /// themselves.
  [[nodiscard]] std::size_t available_bytes() const;

  /// Aligned to 256 bytes and not initialised; null for 0 bytes. Throws `error` (cannot_fit).
  [[nodiscard]] void* allocate(std::size_t bytes);
  /// Releases memory of allocate(), of the same size; nothing for null. It may wait for the GPU.
  void release(void* memory, std::size_t bytes) noexcept;

  /// Page-locked host memory. Where the system does not lock that much it is ordinary memory, with one
  /// warning. Throws `error` (cannot_fit).
  [[nodiscard]] void* allocate_host(std::size_t bytes);
  /// Releases memory of allocate_host(), of the same size; nothing for null. No queued work may use it.
  void release_host(void* memory, std::size_t bytes) noexcept;

  /// How much allocate_host can lock. Where the process has a limit this is tried out: no other thread may
  /// lock memory meanwhile.
  [[nodiscard]] std::size_t lockable_bytes() const;

  /// Counts allocate_host(), and what other owners add.
  [[nodiscard]] memory_account& host_account() noexcept { return host_account_; }
  /// Empty when the driver does not say.
  [[nodiscard]] std::string pci_address() const;

  /// Bytes that are allocated through this object now: on the GPU, or on the host for it.
  [[nodiscard]] std::size_t bytes_in_use(memory kind = memory::device) const noexcept {
    return account(kind).now();
  }
  /// The most bytes at once since the device was made, or since forget_peaks().
  [[nodiscard]] std::size_t peak_bytes(memory kind = memory::device) const noexcept {
    return account(kind).peak();
  }
  /// Resets the peaks of both kinds of memory to what is in use now.
  void forget_peaks() noexcept {
    device_account_.forget_peak();
    host_account_.forget_peak();
  }

  /// The algorithms that its GEMMs run with.
  [[nodiscard]] cuda::tuning& tuning() noexcept { return tuning_; }

  /// Lets a library compute attention of the shapes that it supports; null: none. Call it before any plan and
  /// any launch.
  void attend_with(std::unique_ptr<attention_backend> backend) noexcept { attention_ = std::move(backend); }
  /// What attend_with() was given; null: none.
  [[nodiscard]] attention_backend* attention() const noexcept { return attention_.get(); }

  /// From now on every wait for one of its streams or events throws `why`: for a library that ends its
  /// kernels without a result. The first reason counts. Any thread may call it.
  void mark_failed(error const& why) {
    auto reason = std::make_unique<error const>(why);
    error const* nothing = nullptr;
    if (failed_.compare_exchange_strong(nothing, reason.get())) {
      static_cast<void>(reason.release());
    }
  }
  /// Throws that reason, if there is one.
  void check_failed() const {
    if (auto const* const why = failed_.load(std::memory_order_acquire)) [[unlikely]] {
      throw *why;
    }
  }

  /// A stream of the highest priority.
  [[nodiscard]] stream urgent_stream() { return stream{*this, priority::highest}; }

  /// Makes it the calling thread's current device, as the CUDA runtime requires.
  void activate() const;

private:
  friend stream;

  [[nodiscard]] memory_account const& account(memory kind) const noexcept {
    return kind == memory::device ? device_account_ : host_account_;
  }

  int ordinal_;
  std::string model_;
  memory_account device_account_;
  memory_account host_account_;
  std::unique_ptr<detail::host_memory> host_memory_;
  std::unique_ptr<attention_backend> attention_;
  std::atomic<int> streams_{0};  ///< created so far: each has a number
  std::atomic<error const*> failed_{nullptr};
  cuda::tuning tuning_;
};

static_assert(device_policy<device>);

}  // namespace superoffload::cuda

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cuda/impl/device_inl.hpp>
#endif
