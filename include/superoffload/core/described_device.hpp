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
  using policy_category = category::device;  ///< makes it a device_policy

  /// Can be made, but a wait throws error(internal).
  class event {
  public:
    /// @{
    /// error(internal) from everything but the constructor.
    explicit event(described_device&) {}
    static void wait() { detail::absent(); }
    static bool done() { detail::absent(); }
    /// @}
  };
  /// The same with a time, which throws as well.
  class timed_event : public event {
  public:
    /// @{
    /// error(internal) from everything but the constructor.
    using event::event;
    static double seconds_since(timed_event const&) { detail::absent(); }
    /// @}
  };
  /// Can be made, but nothing can be queued.
  class stream {
  public:
    /// @{
    /// error(internal) from everything but the constructor.
    explicit stream(described_device&) {}
    static void copy(void*, void const*, std::size_t) { detail::absent(); }
    static void fill_zero(void*, std::size_t) { detail::absent(); }
    static void record(event&) { detail::absent(); }
    static void wait(event&) { detail::absent(); }
    static void synchronize() { detail::absent(); }
    /// @}

    /// It has every kernel.
    template <class Arguments>
    friend void launch(stream&, Arguments const&) {
      detail::absent();
    }
  };

  /// `description` is for people; `available`: the bytes of its memory, against which plans are checked.
  described_device(std::string description, std::size_t available)
      : description_{std::move(description)}, available_{available} {}

  static std::string name() { return "described"; }  ///< the kind of device, in one word
  /// @{
  /// As the constructor got it.
  [[nodiscard]] std::string const& description() const noexcept { return description_; }
  [[nodiscard]] std::size_t available_bytes() const noexcept { return available_; }
  /// @}
  /// @{
  /// The values of a GPU: core/gpu.hpp.
  static constexpr std::size_t logits_chunk_bytes = gpu::logits_chunk_bytes;
  static constexpr std::size_t gemm_workspace_bytes = gpu::gemm_workspace_bytes;
  static constexpr double flops_per_byte = gpu::flops_per_byte;
  static constexpr double settling_time = gpu::settling_time;
  /// @}

  static memory_account& host_account() { detail::absent(); }  ///< throws error(internal)
  static std::string pci_address() { return {}; }              ///< empty: it is on no bus
  static std::size_t lockable_bytes() { return std::numeric_limits<std::size_t>::max(); }  ///< no limit

  /// @{
  /// Allocating throws error(internal); releasing does nothing.
  static void* allocate(std::size_t) { detail::absent(); }
  static void release(void*, std::size_t) noexcept {}
  static void* allocate_host(std::size_t) { detail::absent(); }
  static void release_host(void*, std::size_t) noexcept {}
  /// @}

  /// The kernels of cuda::device need none without another implementation of attention.
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
