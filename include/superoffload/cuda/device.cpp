// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/cuda/check.hpp>
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/product.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <thread>
#include <utility>
#include <vector>

namespace superoffload::cuda {

namespace {

/// Host blocks of this size and more are mapped and registered, several times faster than cudaHostAlloc.
constexpr std::size_t mapped_bytes = std::size_t{4} << 20;

std::string name_of(int ordinal) { return concat("CUDA device ", ordinal); }

/// Gives every page of a mapping its memory, on a few threads where that is worth it.
void touch(std::byte* memory, std::size_t bytes) {
  constexpr std::size_t page = 4096;
  constexpr std::size_t worth_a_thread = std::size_t{256} << 20;
  auto const threads = std::clamp<std::size_t>(bytes / worth_a_thread, 1,
                                               std::max(1U, std::thread::hardware_concurrency() / 2));
  auto const piece = (bytes / threads + page) / page * page;
  auto const touch_piece = [=](std::size_t begin) {
    for (auto at = begin; at < std::min(bytes, begin + piece); at += page) { memory[at] = std::byte{0}; }
  };
  std::vector<std::jthread> workers;
  for (std::size_t begin = piece; begin < bytes; begin += piece) { workers.emplace_back(touch_piece, begin); }
  touch_piece(0);
}

void* mapped_memory(std::size_t bytes) {
  // Pages are counted when they are touched, as on hosts that grow with their guests.
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return nullptr;
  }
  madvise(memory, bytes, MADV_HUGEPAGE);
  touch(static_cast<std::byte*>(memory), bytes);
  if (cudaHostRegister(memory, bytes, cudaHostRegisterDefault) != cudaSuccess) {
    cudaGetLastError();
    munmap(memory, bytes);
    return nullptr;
  }
  return memory;
}

}  // namespace

void detail::check(int code, std::string_view call, std::string_view where) {
  auto const status = static_cast<cudaError_t>(code);
  if (status == cudaSuccess) [[likely]] {
    return;
  }
  cudaGetLastError();  // an error that is not for good must not surface a second time
  fail(exit_code::device, call, " on ", where, " failed: ", std::string_view{cudaGetErrorString(status)},
       " (", std::string_view{cudaGetErrorName(status)},
       "); if a kernel before it is at fault, CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer finds it");
}

void device::memory_account::add(std::size_t bytes) noexcept {
  auto const sum = now += bytes;
  auto highest = peak.load();
  while (highest < sum && !peak.compare_exchange_weak(highest, sum)) {}
}

device::device(int ordinal) : ordinal_{ordinal} {
  int count = 0;
  auto const status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    cudaGetLastError();
    fail(exit_code::device, "no usable CUDA device: ",
         status != cudaSuccess ? std::string_view{cudaGetErrorString(status)}
                               : std::string_view{"none was found"},
         "; expected an NVIDIA GPU with a driver for CUDA ", CUDART_VERSION / 1000, ".",
         CUDART_VERSION % 1000 / 10, " or newer (see nvidia-smi); or train on the cpu device");
  }
  expect(ordinal >= 0 && ordinal < count, exit_code::device, "there is no CUDA device ", ordinal,
         ": expected 0 to ", count - 1, " (see CUDA_VISIBLE_DEVICES)");
  activate();
  cudaDeviceProp properties{};
  detail::check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties", name_of(ordinal));
  model_ = properties.name;
}

void device::activate() const { detail::check(cudaSetDevice(ordinal_), "cudaSetDevice", name_of(ordinal_)); }

void* device::allocate(std::size_t bytes) {
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
    fail(exit_code::cannot_fit, "cannot allocate ", bytes, " bytes on ", name_of(ordinal_), ": ", available,
         " of ", total, " bytes are free; use a smaller model or batch");
  }
  detail::check(status, "cudaMalloc", name_of(ordinal_));
  device_account_.add(bytes);
  return memory;
}

void device::release(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) {
    return;
  }
  cudaSetDevice(ordinal_);
  cudaFree(memory);
  device_account_.now -= bytes;
}

void* device::allocate_host(std::size_t bytes) {
  if (bytes == 0) {
    return nullptr;
  }
  activate();
  void* memory = bytes >= mapped_bytes ? mapped_memory(bytes) : nullptr;
  if (memory == nullptr && cudaHostAlloc(&memory, bytes, cudaHostAllocPortable) != cudaSuccess) {
    cudaGetLastError();
    fail(exit_code::cannot_fit, "cannot allocate ", bytes,
         " bytes of page-locked host memory: expected that much to be free (see ulimit -l); use a smaller "
         "model or batch");
  }
  host_account_.add(bytes);
  return memory;
}

void device::release_host(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) {
    return;
  }
  cudaSetDevice(ordinal_);
  if (bytes >= mapped_bytes && cudaHostUnregister(memory) == cudaSuccess) {
    munmap(memory, bytes);
  } else {
    cudaGetLastError();
    cudaFreeHost(memory);
  }
  host_account_.now -= bytes;
}

event::event(device& device) {
  device.activate();
  detail::check(cudaEventCreateWithFlags(&handle_, cudaEventDisableTiming), "cudaEventCreateWithFlags",
                name_of(device.ordinal()));
}
event::event(event&& other) noexcept
    : handle_{std::exchange(other.handle_, nullptr)}, recorded_{std::exchange(other.recorded_, false)} {}
event& event::operator=(event&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(recorded_, other.recorded_);
  return *this;
}
event::~event() {
  if (handle_ != nullptr) {
    cudaEventDestroy(handle_);
  }
}

CUevent_st* event::point() const {
  if (!recorded_) {
    std::fputs("superoffload: waiting for an event that was never recorded\n", stderr);
    std::abort();
  }
  return handle_;
}

void event::wait() const { detail::check(cudaEventSynchronize(point()), "cudaEventSynchronize", "an event"); }

bool event::done() const noexcept { return recorded_ && cudaEventQuery(handle_) != cudaErrorNotReady; }

stream::stream(device& device) : device_{&device}, number_{device.streams_++} {
  activate();
  detail::check(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags",
                name());
}

stream::~stream() {
  cudaSetDevice(device_->ordinal());
  cudaStreamSynchronize(handle_);
  products_.reset();
  cudaStreamDestroy(handle_);
}

std::string stream::name() const { return concat("stream ", number_, " of ", name_of(device_->ordinal())); }

void stream::activate() const { device_->activate(); }

void stream::copy(void* to, void const* from, std::size_t bytes) {
  if (bytes == 0) {
    return;
  }
  activate();
  auto const status = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, handle_);
  if (status != cudaSuccess) {
    detail::check(status, "cudaMemcpyAsync", name());
  }
}

void stream::fill_zero(void* to, std::size_t bytes) {
  if (bytes == 0) {
    return;
  }
  activate();
  auto const status = cudaMemsetAsync(to, 0, bytes, handle_);
  if (status != cudaSuccess) {
    detail::check(status, "cudaMemsetAsync", name());
  }
}

void stream::record(event& event) {
  activate();
  auto const status = cudaEventRecord(event.handle_, handle_);
  if (status != cudaSuccess) {
    detail::check(status, "cudaEventRecord", name());
  }
  event.recorded_ = true;
}

void stream::wait(event const& event) {
  auto* const point = event.point();
  activate();
  auto const status = cudaStreamWaitEvent(handle_, point, 0);
  if (status != cudaSuccess) {
    detail::check(status, "cudaStreamWaitEvent", name());
  }
}

void stream::synchronize() {
  activate();
  auto const status = cudaStreamSynchronize(handle_);
  if (status != cudaSuccess) {
    detail::check(status, "cudaStreamSynchronize", name());
  }
}

void stream::check_launch(char const* kernel) const {
  auto const status = cudaGetLastError();
  if (status != cudaSuccess) {
    detail::check(status, concat("launch of ", std::string_view{kernel}), name());
  }
}

detail::products& stream::products() {
  if (!products_) {
    products_ = std::make_unique<detail::products>(*device_, handle_, name());
  }
  return *products_;
}

}  // namespace superoffload::cuda
