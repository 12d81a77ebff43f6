// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

// The types behind cudaStream_t and cudaEvent_t: headers of this component need no CUDA toolkit.
struct CUstream_st;
struct CUevent_st;

namespace superoffload::cuda {

class device;

namespace detail {
class gemms;
}

/// A point in a stream. Recording again moves it; a wait that has begun keeps the earlier point.
class event {
public:
  /// An event of any of the device's streams, not recorded yet. Throws `error` (device).
  explicit event(device& device);
  event(event&& other) noexcept;             ///< leaves the other one unrecorded
  event& operator=(event&& other) noexcept;  ///< swaps
  ~event();

  /// Blocks the caller until the point is reached. Throws `error` (device) when the device failed before it.
  /// Ends the program when the event was never recorded.
  void wait() const;

  /// Whether the point is reached, also on a device that failed; false for an event never recorded.
  [[nodiscard]] bool done() const noexcept;

protected:
  /// `flags` of cudaEventCreateWithFlags.
  event(device& device, unsigned flags);
  /// CUDA's handle. Ends the program when the event was never recorded.
  [[nodiscard]] CUevent_st* point() const;

private:
  friend class stream;

  device* device_;
  CUevent_st* handle_ = nullptr;
  bool recorded_ = false;
};

/// An event that knows when its stream reached it.
class timed_event : public event {
public:
  /// An event of any of the device's streams, not recorded yet. Throws `error` (device).
  explicit timed_event(device& device);

  /// Seconds between the points recorded last, both of them reached; negative when `other` is later.
  [[nodiscard]] double seconds_since(timed_event const& other) const;
};

/// Of the kernels that are ready, a GPU starts those of streams with higher priority first.
enum class priority { normal, highest };

/// An in-order queue of a GPU that does not synchronise with any other. One thread at a time may use it. When
/// a kernel fails, its device is lost: every later call on any stream throws `error` (device).
class stream {
public:
  /// A new queue of the device, which must outlive it. Throws `error` (device).
  explicit stream(device& device, priority wanted = priority::normal);
  stream(stream const&) = delete;
  stream& operator=(stream const&) = delete;
  /// Waits for all tasks.
  ~stream();

  /// Queues a copy of `bytes` from `from` to `to`, which do not overlap; each is device or host memory. It is
  /// asynchronous for host memory from device::allocate_host; small copies between that memory and the device
  /// do not wait for large ones of other streams.
  void copy(void* to, void const* from, std::size_t bytes);
  /// Queues zeros over `bytes` bytes of device memory at `to`.
  void fill_zero(void* to, std::size_t bytes);
  /// Makes `event` the point behind everything queued so far.
  void record(event& event);
  /// Later tasks run after the point that `event` marks now. Ends the program when it was never recorded.
  void wait(event const& event);
  /// Blocks the caller until everything queued so far has run.
  void synchronize();

  [[nodiscard]] CUstream_st* handle() const noexcept { return handle_; }  ///< a cudaStream_t; this owns it
  [[nodiscard]] device& of() const noexcept { return *device_; }          ///< the device it was made with
  /// The name in messages: "stream 2 of CUDA device 0".
  [[nodiscard]] std::string name() const;
  /// Makes its device the calling thread's current one.
  void activate() const;
  /// What GEMMs keep between calls.
  [[nodiscard]] detail::gemms& gemms();
  /// Throws `error` (device) when the launch before this call, of the kernel with that name, was refused.
  void check_launch(char const* kernel) const;

private:
  device* device_;
  int number_;
  CUstream_st* handle_ = nullptr;
  std::unique_ptr<detail::gemms> gemms_;
};

}  // namespace superoffload::cuda
