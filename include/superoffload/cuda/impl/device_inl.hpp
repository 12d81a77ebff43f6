// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/log.hpp>
#include <superoffload/core/numa.hpp>
#include <superoffload/core/pinned_memory.hpp>
#include <superoffload/core/range.hpp>
#include <superoffload/cuda/check.hpp>
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/gemms.hpp>
#include <superoffload/cuda/small_copy.hpp>

#include <atomic>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <memory>
#include <optional>
#include <utility>

namespace superoffload::cuda {

namespace detail {

/// What CUDA and cuBLASLt load and allocate for themselves with the first kernels.
inline constexpr std::size_t library_bytes = std::size_t{256} << 20;

inline std::atomic<bool> opened{false};  ///< a device was opened: one that fails later is lost, not absent
inline std::atomic<bool> lost{false};

/// Does the current device fail in every call? Other errors are cleared: they must not surface twice.
SUPEROFFLOAD_INLINE bool fails_for_good() {
  cudaGetLastError();
  auto const status = cudaStreamQuery(nullptr);
  cudaGetLastError();
  bool const captures = status >= cudaErrorStreamCaptureUnsupported && status <= cudaErrorCapturedEvent;
  return status != cudaSuccess && status != cudaErrorNotReady && !captures;
}

/// An address as the device uses it, and whether it is the host's memory; null where the device cannot.
struct seen_by_device {
  void* address = nullptr;
  bool on_host = false;

  explicit seen_by_device(void const* memory) {
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
      cudaGetLastError();  // the call that uses the memory reports it
      return;
    }
    address = attributes.devicePointer;
    on_host = attributes.type == cudaMemoryTypeHost;
  }
};

SUPEROFFLOAD_INLINE std::string name_of(int ordinal) { return concat("CUDA device ", ordinal); }

}  // namespace detail

/// How CUDA locks pages, for every device. Its errors are cleared: they must not surface twice.
struct detail::host_memory {
  /// Near the GPU, as are the threads that work for it.
  explicit host_memory(std::optional<int> node) : blocks{{}, warn, node} {}

  struct locks {
    static bool done(cudaError_t status) {
      if (status != cudaSuccess) {
        cudaGetLastError();
      }
      return status == cudaSuccess;
    }
    static bool lock(void* memory, std::size_t bytes) {
      return done(cudaHostRegister(memory, bytes, cudaHostRegisterDefault));
    }
    static void unlock(void* memory) { done(cudaHostUnregister(memory)); }
    static void* allocate(std::size_t bytes) {
      void* memory = nullptr;
      return done(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable)) ? memory : nullptr;
    }
    static void release(void* memory) { done(cudaFreeHost(memory)); }
  };

  pinned_memory<locks> blocks;
};

SUPEROFFLOAD_INLINE bool detail::device_is_lost() noexcept { return detail::lost; }

SUPEROFFLOAD_INLINE void detail::fail_call(std::string_view call, std::string_view where,
                                           std::string_view reason) {
  auto const range = last_range();
  auto const what =
      concat(call, " on ", where, " failed", range.empty() ? "" : ", last range ", range, ": ", reason);
  if (detail::lost || (detail::opened && detail::fails_for_good())) {
    detail::lost = true;
    fail(exit_code::device_lost, "the GPU is lost to this process: ", what,
         "; dmesg (NVRM: Xid) may tell why, compute-sanitizer finds a kernel at fault");
  }
  fail(exit_code::device, what);
}

SUPEROFFLOAD_EMITTED void detail::check(int code, std::string_view call, std::string_view where) {
  auto const status = static_cast<cudaError_t>(code);
  if (status == cudaSuccess) [[likely]] {
    return;
  }
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    fail(exit_code::cannot_fit, call, " on ", where,
         " failed: out of memory; end what else uses the GPU (see nvidia-smi), or use a smaller model or "
         "batch");
  }
  fail_call(call, where,
            concat(std::string_view{cudaGetErrorString(status)}, " (",
                   std::string_view{cudaGetErrorName(status)}, ")"));
}

SUPEROFFLOAD_INLINE error detail::no_device(int code, int count, int driver_version) {
  auto const status = static_cast<cudaError_t>(code);
  auto const version = [](int v) { return concat(v / 1000, ".", v % 1000 / 10); };
  auto const advice = concat("expected an NVIDIA GPU with a driver for CUDA ", version(CUDART_VERSION),
                             " or newer (see nvidia-smi), or --device cpu");
  if (driver_version == 0) {
    return {exit_code::driver, concat("no NVIDIA driver is installed, or it is not loaded; ", advice)};
  }
  // Within a major version the runtime works with older drivers, and reports those with which it does not.
  if (status == cudaErrorInsufficientDriver || status == cudaErrorSystemDriverMismatch ||
      status == cudaErrorCompatNotSupportedOnDevice || status == cudaErrorStubLibrary) {
    return {exit_code::driver, concat("the NVIDIA driver is for CUDA ", version(driver_version),
                                      " and does not work with this program: ",
                                      std::string_view{cudaGetErrorString(status)}, "; ", advice)};
  }
  char const* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return {
      exit_code::device,
      concat("no usable CUDA device: ",
             status == cudaSuccess && count == 0 ? std::string_view{"none was found"}
                                                 : std::string_view{cudaGetErrorString(status)},
             visible == nullptr ? "" : " (CUDA_VISIBLE_DEVICES is '",
             visible == nullptr ? "" : printable(visible, 80), visible == nullptr ? "" : "')", "; ", advice)};
}

SUPEROFFLOAD_INLINE device::~device() { delete failed_.load(); }

SUPEROFFLOAD_INLINE int device::count() {
  int found = 0;
  auto const status = cudaGetDeviceCount(&found);
  if (status != cudaSuccess || found == 0) {
    int driver = 0;
    cudaDriverGetVersion(&driver);
    cudaGetLastError();
    throw detail::no_device(status, found, driver);
  }
  return found;
}

SUPEROFFLOAD_INLINE device::device(int ordinal) : ordinal_{ordinal} {
  int const found = count();
  expect(ordinal >= 0 && ordinal < found, exit_code::device, "there is no CUDA device ", ordinal,
         ": expected 0 to ", found - 1, " (see nvidia-smi -L and CUDA_VISIBLE_DEVICES)");
  activate();
  cudaDeviceProp properties{};
  detail::check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties",
                detail::name_of(ordinal));
  model_ = properties.name;
  expect(detail::kernels_fit_current_device(), exit_code::device, description(), " has compute capability ",
         properties.major, ".", properties.minor,
         ", for which this program was built without kernels; expected a build with -D "
         "SUPEROFFLOAD_CUDA_ARCHITECTURES=",
         properties.major * 10 + properties.minor, properties.major >= 9 ? "a" : "",
         "-real, or --device cpu");
  detail::opened = true;
  host_memory_ = std::make_unique<detail::host_memory>(node_beside(pci_address()));
}

SUPEROFFLOAD_INLINE bool device::multiplies_float8() const {
  int major = 0, minor = 0;
  detail::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal_),
                "cudaDeviceGetAttribute", description());
  detail::check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal_),
                "cudaDeviceGetAttribute", description());
  return major > 8 || (major == 8 && minor == 9);
}

SUPEROFFLOAD_INLINE std::string device::description() const {
  return concat(name(), ":", ordinal_, " (", model_, ")");
}

SUPEROFFLOAD_INLINE std::string device::pci_address() const {
  char text[32]{};
  if (cudaDeviceGetPCIBusId(text, sizeof text, ordinal_) != cudaSuccess) {
    cudaGetLastError();
    return {};
  }
  return text;
}

SUPEROFFLOAD_INLINE std::size_t device::available_bytes() const {
  activate();
  std::size_t available = 0, total = 0;
  detail::check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo", detail::name_of(ordinal_));
  return available > detail::library_bytes ? available - detail::library_bytes : 0;
}

SUPEROFFLOAD_INLINE std::size_t device::lockable_bytes() const {
  activate();
  return host_memory_->blocks.lockable_bytes();
}

SUPEROFFLOAD_EMITTED void device::activate() const {
  detail::check(cudaSetDevice(ordinal_), "cudaSetDevice", detail::name_of(ordinal_));
}

SUPEROFFLOAD_INLINE void* device::allocate(std::size_t bytes) {
  if (bytes == 0) {
    return nullptr;
  }
  activate();
  void* memory = nullptr;
  auto const status = cudaMalloc(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t available = 0, total = 0;
    cudaMemGetInfo(&available, &total);
    fail(exit_code::cannot_fit, "cannot allocate ", bytes, " bytes on ", description(), ": ", available,
         " of ", total, " bytes are free, ", device_account_.now(),
         " are this program's; end what else uses the GPU (see nvidia-smi), or use a smaller model or batch");
  }
  detail::check(status, "cudaMalloc", detail::name_of(ordinal_));
  device_account_.add(bytes);
  return memory;
}

SUPEROFFLOAD_INLINE void device::release(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) {
    return;
  }
  device_account_.subtract(bytes);
  if (!detail::device_is_lost()) {
    cudaSetDevice(ordinal_);
    cudaFree(memory);
  }
}

SUPEROFFLOAD_INLINE void* device::allocate_host(std::size_t bytes) {
  if (bytes == 0) {
    return nullptr;
  }
  activate();
  void* const memory = host_memory_->blocks.allocate(bytes);
  host_account_.add(bytes);
  return memory;
}

SUPEROFFLOAD_INLINE void device::release_host(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) {
    return;
  }
  host_account_.subtract(bytes);
  if (detail::device_is_lost()) {
    return;
  }
  cudaSetDevice(ordinal_);
  host_memory_->blocks.release(memory, bytes);
}

SUPEROFFLOAD_INLINE event::event(device& device) : event{device, cudaEventDisableTiming} {}
SUPEROFFLOAD_INLINE event::event(device& device, unsigned flags) : device_{&device} {
  device.activate();
  detail::check(cudaEventCreateWithFlags(&handle_, flags), "cudaEventCreateWithFlags",
                detail::name_of(device.ordinal()));
}
SUPEROFFLOAD_INLINE event::event(event&& other) noexcept
    : device_{other.device_},
      handle_{std::exchange(other.handle_, nullptr)},
      recorded_{std::exchange(other.recorded_, false)} {}
SUPEROFFLOAD_INLINE event& event::operator=(event&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  std::swap(recorded_, other.recorded_);
  return *this;
}
SUPEROFFLOAD_INLINE event::~event() {
  if (handle_ != nullptr && !detail::device_is_lost()) {
    cudaEventDestroy(handle_);
  }
}

SUPEROFFLOAD_INLINE CUevent_st* event::point() const {
  if (!recorded_) {
    log_line(log_level::error, "superoffload: waiting for an event that was never recorded");
    std::abort();
  }
  return handle_;
}

SUPEROFFLOAD_INLINE void event::wait() const {
  detail::check(cudaEventSynchronize(point()), "cudaEventSynchronize", "an event");
  device_->check_failed();
}

SUPEROFFLOAD_INLINE bool event::done() const noexcept {
  return recorded_ && cudaEventQuery(handle_) != cudaErrorNotReady;
}

SUPEROFFLOAD_INLINE timed_event::timed_event(device& device) : event{device, cudaEventDefault} {}

SUPEROFFLOAD_INLINE double timed_event::seconds_since(timed_event const& other) const {
  float milliseconds = 0.0F;
  detail::check(cudaEventElapsedTime(&milliseconds, other.point(), point()), "cudaEventElapsedTime",
                "two events");
  return 1e-3 * double{milliseconds};
}

SUPEROFFLOAD_INLINE stream::stream(device& device, priority wanted)
    : device_{&device}, number_{device.streams_++} {
  activate();
  int number = 0;
  if (wanted == priority::highest) {
    detail::check(cudaDeviceGetStreamPriorityRange(nullptr, &number), "cudaDeviceGetStreamPriorityRange",
                  name());
  }
  detail::check(cudaStreamCreateWithPriority(&handle_, cudaStreamNonBlocking, number),
                "cudaStreamCreateWithPriority", name());
}

SUPEROFFLOAD_INLINE stream::~stream() {
  if (detail::device_is_lost()) {
    static_cast<void>(gemms_.release());
    return;
  }
  cudaSetDevice(device_->ordinal());
  cudaStreamSynchronize(handle_);
  gemms_.reset();
  cudaStreamDestroy(handle_);
}

SUPEROFFLOAD_EMITTED std::string stream::name() const {
  return concat("stream ", number_, " of ", detail::name_of(device_->ordinal()));
}

SUPEROFFLOAD_EMITTED void stream::activate() const { device_->activate(); }

SUPEROFFLOAD_INLINE void stream::copy(void* to, void const* from, std::size_t bytes) {
  if (bytes == 0) {
    return;
  }
  activate();
  if (bytes <= most_small_copy) {
    detail::seen_by_device const target{to}, source{from};
    if (target.address != nullptr && source.address != nullptr && target.on_host != source.on_host) {
      small_copy(*this, target.address, source.address, bytes);
      return;
    }
  }
  auto const status = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, handle_);
  if (status != cudaSuccess) {
    detail::check(status, "cudaMemcpyAsync", name());
  }
}

SUPEROFFLOAD_INLINE void stream::fill_zero(void* to, std::size_t bytes) {
  if (bytes == 0) {
    return;
  }
  activate();
  auto const status = cudaMemsetAsync(to, 0, bytes, handle_);
  if (status != cudaSuccess) {
    detail::check(status, "cudaMemsetAsync", name());
  }
}

SUPEROFFLOAD_INLINE void stream::record(event& event) {
  activate();
  auto const status = cudaEventRecord(event.handle_, handle_);
  if (status != cudaSuccess) {
    detail::check(status, "cudaEventRecord", name());
  }
  event.recorded_ = true;
}

SUPEROFFLOAD_INLINE void stream::wait(event const& event) {
  auto* const point = event.point();
  activate();
  auto const status = cudaStreamWaitEvent(handle_, point, 0);
  if (status != cudaSuccess) {
    detail::check(status, "cudaStreamWaitEvent", name());
  }
}

SUPEROFFLOAD_INLINE void stream::synchronize() {
  activate();
  auto const status = cudaStreamSynchronize(handle_);
  if (status != cudaSuccess) {
    detail::check(status, "cudaStreamSynchronize", name());
  }
  device_->check_failed();
}

SUPEROFFLOAD_EMITTED void stream::check_launch(char const* kernel) const {
  auto const status = cudaGetLastError();
  if (status != cudaSuccess) {
    detail::check(status, concat("launch of ", std::string_view{kernel}), name());
  }
}

SUPEROFFLOAD_EMITTED detail::gemms& stream::gemms() {
  if (!gemms_) {
    gemms_ = std::make_unique<detail::gemms>(*device_, handle_, name());
  }
  return *gemms_;
}

}  // namespace superoffload::cuda
