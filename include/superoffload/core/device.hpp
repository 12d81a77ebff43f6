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
/// 1. device memory and host memory its copies are fast from ("pinned"); both aligned to 256 bytes or more;
/// 2. streams: queues whose tasks run one after the other; nothing else is ordered;
/// 3. events: a point in a stream that another stream, or the host, can wait for. Waiting for an event that
/// was never
///    recorded is a broken contract and ends the program;
/// 4. `logits_chunk_bytes`: how much memory a chunk of logits is worth, so that its products are not too
/// small; `gemm_workspace_bytes`: device memory that a stream takes with its first matrix product and
/// keeps;
/// 5. `flops_per_byte`: about how many FLOPs of matrix products take the time of a byte of its memory;
/// `settling_time`: the seconds of work after which it runs at the speed that it keeps;
/// 6. `available_bytes`: how much of its memory may still be allocated, which plans are held against before
/// anything is; `description`: what it is, for people;
/// 7. `host_account`: counts host memory that is in use for it, what `allocate_host` gave and what others
/// add; `pci_address`: where it is on the PCI bus, such as "0000:1b:00.0", empty where it is not: who works
/// beside it on the host can look for its NUMA node;
/// `lockable_bytes`: how much host memory can be pinned;
/// 8. timed events: events that also know when their stream reached them;
/// 9. kernels: `launch(stream, arguments)`, found by argument-dependent lookup, for the argument structs of
/// kernel/; and where those have a member `scratch`, `scratch_bytes(device, arguments)`: how much of it the
/// kernel wants, the same or more for more rows or a longer document, whatever the documents are.
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

/// A device that measures how its kernels run best, and keeps what it chose as text: with the same choices a
/// run gives the same bits. `load` takes over what `save` gave, with a source for messages, before any kernel
/// runs; what was chosen on another kind of device does no harm.
template <class D>
concept tuned_device = device_policy<D> && requires(D& device, std::string const& text) {
  { device.tuning().save() } -> std::convertible_to<std::string>;
  device.tuning().load(text, text);
};

/// A stream for work that other processors wait for: it goes before that of other streams, where the device
/// has such streams.
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

/// Waits for what is queued, for destructors: buffers may go afterwards. What failed has been reported to
/// whoever waited for it, or nobody did.
template <class Stream>
void drain(Stream& stream) noexcept {
  try {
    stream.synchronize();
  } catch (...) {}
}

/// Drains a stream, or threads, at the end of the scope: for who queues work on what would end with the
/// scope, by an exception too. Declared behind it.
template <class Stream>
class drain_at_end {
public:
  explicit drain_at_end(Stream& stream) noexcept : stream_{&stream} {}
  drain_at_end(drain_at_end const&) = delete;
  drain_at_end& operator=(drain_at_end const&) = delete;
  ~drain_at_end() { drain(*stream_); }

private:
  Stream* stream_;
};

/// Has the device a kernel for these arguments? `launch` returns once the work is queued.
template <class D, class Arguments>
concept launches =
    requires(typename D::stream& stream, Arguments const& arguments) { launch(stream, arguments); };

}  // namespace superoffload
