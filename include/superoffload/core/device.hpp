// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/memory_account.hpp>
#include <superoffload/core/policy.hpp>

#include <concepts>
#include <cstddef>
#include <string>
#include <utility>

namespace superoffload {

/// A kind of processor with its memory. A device offers
/// 1. device memory, and host memory that it copies fast ("pinned"); both aligned to 256 bytes or more;
/// 2. streams: queues whose tasks run one after the other; nothing else is ordered;
/// 3. events: a point in a stream that another stream, or the host, can wait for. Waiting for an event that
///    was never recorded breaks the contract and ends the program;
/// 4. `logits_chunk_bytes`: the memory to give a chunk of logits, so that its GEMMs are not too small;
///    `gemm_workspace_bytes`: device memory that a stream takes with its first GEMM and keeps;
/// 5. `flops_per_byte`: about how many FLOPs of a GEMM take as long as one byte of the device's memory;
///    `settling_time`: the seconds of work after which the device runs at its lasting speed;
/// 6. `available_bytes`: how much of its memory may still be allocated; plans are checked against it;
///    `description`: a text for people;
/// 7. `host_account`: counts the host memory in use for the device, from `allocate_host` and from other
///    owners; `pci_address`: its address on the PCI bus, such as "0000:1b:00.0", or empty: host threads use
///    it to find the device's NUMA node; `lockable_bytes`: how much host memory can be pinned;
/// 8. timed events: events that also know when their stream reached them;
/// 9. kernels: `launch(stream, arguments)`, found by argument-dependent lookup, for the argument structs of
///    kernel/. For arguments with a member `scratch` there is also `scratch_bytes(device, arguments)`: how
///    much the kernel needs. It never falls with more rows or a longer document, and depends on nothing else
///    of the documents.
///
/// Errors of asynchronous work surface as exceptions from `synchronize` of its stream or `wait` of a later
/// event. The device outlives everything made with it.
template <class D>
concept device_policy =
    policy_of<D, category::device> &&
    requires(D& device, typename D::stream& stream, typename D::event& event, typename D::timed_event& timed,
             void* to, void const* from, std::size_t bytes) {
      { D::name() } -> std::convertible_to<std::string>;
      { D::logits_chunk_bytes } -> std::convertible_to<std::size_t>;
      { D::gemm_workspace_bytes } -> std::convertible_to<std::size_t>;
      { D::flops_per_byte } -> std::convertible_to<double>;
      { D::settling_time } -> std::convertible_to<double>;
      { device.description() } -> std::convertible_to<std::string>;
      { device.available_bytes() } -> std::same_as<std::size_t>;
      { device.host_account() } -> std::same_as<memory_account&>;
      { device.pci_address() } -> std::convertible_to<std::string>;
      { device.lockable_bytes() } -> std::same_as<std::size_t>;
      { device.allocate(bytes) } -> std::same_as<void*>;
      { device.release(to, bytes) } noexcept;
      { device.allocate_host(bytes) } -> std::same_as<void*>;
      { device.release_host(to, bytes) } noexcept;
      typename D::stream;
      requires std::constructible_from<typename D::stream, D&>;
      requires std::constructible_from<typename D::event, D&>;
      stream.copy(to, from, bytes);
      stream.fill_zero(to, bytes);
      stream.record(event);
      stream.wait(event);
      stream.synchronize();
      event.wait();
      { event.done() } -> std::same_as<bool>;
      requires std::constructible_from<typename D::timed_event, D&>;
      stream.record(timed);
      { timed.done() } -> std::same_as<bool>;
      { timed.seconds_since(timed) } -> std::same_as<double>;
    };

/// A device that measures which algorithms run best and keeps its choices as text. With the same choices a
/// run gives the same bits. `load` takes what `save` gave, and the name of its source for messages, before
/// any kernel runs. Choices of another kind of device are ignored. After `settle(true)` it measures nothing,
/// until `settle(false)`. Work of more than `most_tokens` tokens takes the choices for so many.
template <class D>
concept tuned_device = device_policy<D> && requires(D& device, std::string const& text) {
  { device.tuning().save() } -> std::convertible_to<std::string>;
  device.tuning().load(text, text);
  device.tuning().settle(true);
  { device.tuning().most_tokens } -> std::convertible_to<std::int64_t>;
};

/// A stream for work that other processors wait for. It has priority over other streams, where the device has
/// priorities.
template <device_policy D>
[[nodiscard]] typename D::stream urgent_stream(D& device) {
  if constexpr (requires {
                  { device.urgent_stream() } -> std::same_as<typename D::stream>;
                }) {
    return device.urgent_stream();
  } else {
    return typename D::stream{device};
  }
}

/// Can the device run kernel::float8_gemm? A GPU needs instructions for it, a processor does not.
template <device_policy D>
[[nodiscard]] bool multiplies_float8(D const& device) {
  if constexpr (requires {
                  { device.multiplies_float8() } -> std::same_as<bool>;
                }) {
    return device.multiplies_float8();
  } else {
    return true;
  }
}

/// Waits for what is queued, for destructors: buffers may be freed afterwards. Errors are dropped: a call
/// that waited for the work has reported them, or no call needed its result.
template <class Stream>
void drain(Stream& stream) noexcept {
  try {
    stream.synchronize();
  } catch (...) {}
}

/// Drains a stream, or threads, at the end of the scope, also when an exception leaves it. Declare it after
/// everything that the queued work uses.
template <class Stream>
class drain_at_end {
public:
  /// `stream` must live until the end of the scope.
  explicit drain_at_end(Stream& stream) noexcept : stream_{&stream} {}
  drain_at_end(drain_at_end const&) = delete;
  drain_at_end& operator=(drain_at_end const&) = delete;
  ~drain_at_end() { drain(*stream_); }

private:
  Stream* stream_;
};

/// Does the device have a kernel for these arguments? `launch` returns once the work is queued.
template <class D, class Arguments>
concept launches =
    requires(typename D::stream& stream, Arguments const& arguments) { launch(stream, arguments); };

}  // namespace superoffload
