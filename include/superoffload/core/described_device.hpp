// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/device.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/gpu.hpp>

#include <cstddef>
#include <limits>
#include <string>
#include <utility>

namespace superoffload {

namespace detail {
[[noreturn]] inline void absent() { fail(exit_code::internal, "a device that is only described was used"); }
}  // namespace detail

/// A GPU that is described but not present, for dry runs: they count the memory that a run on cuda::device
/// would take. Nothing can be allocated or run on it.
class described_device {
public:
  using policy_category = category::device;

  class event {
  public:
    explicit event(described_device&) {}
    static void wait() { detail::absent(); }
    static bool done() { detail::absent(); }
  };
  class timed_event : public event {
  public:
    using event::event;
    static double seconds_since(timed_event const&) { detail::absent(); }
  };
  class stream {
  public:
    explicit stream(described_device&) {}
    static void copy(void*, void const*, std::size_t) { detail::absent(); }
    static void fill_zero(void*, std::size_t) { detail::absent(); }
    static void record(event&) { detail::absent(); }
    static void wait(event&) { detail::absent(); }
    static void synchronize() { detail::absent(); }

    /// It has every kernel.
    template <class Arguments>
    friend void launch(stream&, Arguments const&) {
      detail::absent();
    }
  };

  described_device(std::string description, std::size_t available)
      : description_{std::move(description)}, available_{available} {}

  static std::string name() { return "described"; }
  [[nodiscard]] std::string const& description() const noexcept { return description_; }
  [[nodiscard]] std::size_t available_bytes() const noexcept { return available_; }
  static constexpr std::size_t logits_chunk_bytes = gpu::logits_chunk_bytes;
  static constexpr std::size_t gemm_workspace_bytes = gpu::gemm_workspace_bytes;
  static constexpr double flops_per_byte = gpu::flops_per_byte;
  static constexpr double settling_time = gpu::settling_time;

  static memory_account& host_account() { detail::absent(); }
  static std::string pci_address() { return {}; }
  static std::size_t lockable_bytes() { return std::numeric_limits<std::size_t>::max(); }

  static void* allocate(std::size_t) { detail::absent(); }
  static void release(void*, std::size_t) noexcept {}
  static void* allocate_host(std::size_t) { detail::absent(); }
  static void release_host(void*, std::size_t) noexcept {}

  template <class Arguments>
  friend constexpr std::size_t scratch_bytes(described_device const&, Arguments const&) noexcept {
    return 0;
  }

private:
  std::string description_;
  std::size_t available_;
};

static_assert(device_policy<described_device>);

}  // namespace superoffload
