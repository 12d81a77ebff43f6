// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Loaded ahead of the CUDA runtime (LD_PRELOAD), makes a GPU fail or slow under a program that does not know.
//
//   LOSE_DEVICE_AFTER=n    a kernel ends in a trap before the host waits for a stream the (n + 1)-th time
//   HIDE_USED_MEMORY=1     memory that others use counts as free
//   LEAVE_MEMORY=bytes     when the program first asks for free memory, all but so much is taken before
//   REFUSE_ALLOCATION=n,l  allocation n of device or pinned memory, from 0, fails; with l = 1 later ones too
//   REFUSED=file           is made when an allocation is refused
//   DELAY_STREAMS=seed     one of three copies, kernels and events comes up to .3 ms late; the destination
//                          of such a copy is NaN until it arrives
//   DELAYS=file            gets a line with the number of delays when a process ends
#include "examples/faulty_kernels.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

namespace {

template <class Function>
Function* real(char const* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool refused() {
  static char const* const wanted = std::getenv("REFUSE_ALLOCATION");
  static std::atomic<int> allocations{0};
  if (wanted == nullptr) {
    return false;
  }
  int at = 0, lasting = 0;
  std::sscanf(wanted, "%d,%d", &at, &lasting);
  int const number = allocations++;
  if (number != at && (lasting == 0 || number < at)) {
    return false;
  }
  if (char const* const file = std::getenv("REFUSED")) {
    int const made = open(file, O_CREAT | O_WRONLY, 0600);
    close(made);
  }
  return true;
}

thread_local bool delaying = false;  // the delay itself is a kernel

struct delay_count {
  std::atomic<int> delays{0};

  ~delay_count() {
    if (char const* const file = std::getenv("DELAYS"); file != nullptr && delays > 0) {
      if (std::FILE* const out = std::fopen(file, "a")) {
        std::fprintf(out, "%d\n", delays.load());
        std::fclose(out);
      }
    }
  }
} count;

/// Whether this operation is to come late; then its stream has the delay.
bool delays(cudaStream_t stream) {
  static char const* const seed = std::getenv("DELAY_STREAMS");
  static std::atomic<unsigned> operations{0};
  if (seed == nullptr || delaying) {
    return false;
  }
  unsigned random = (operations++ * 2654435761U) ^ (static_cast<unsigned>(std::atoi(seed)) * 40503U);
  random ^= random >> 15;
  random *= 2246822519U;
  random ^= random >> 13;
  if (random % 3 != 0) {
    return false;
  }
  delaying = true;
  superoffload::test::queue_wait(stream, (random >> 8) % 500000);
  delaying = false;
  ++count.delays;
  return true;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  static char const* const after = std::getenv("LOSE_DEVICE_AFTER");
  static int waits = 0;
  if (after != nullptr && waits++ == std::atoi(after)) {
    superoffload::test::queue_trap(stream);
  }
  static auto* const wait = real<cudaError_t(cudaStream_t)>("cudaStreamSynchronize");
  return wait(stream);
}

cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total) {
  static auto* const ask = real<cudaError_t(std::size_t*, std::size_t*)>("cudaMemGetInfo");
  static char const* const left = std::getenv("LEAVE_MEMORY");
  static bool taken = false;
  auto status = ask(available, total);
  if (left != nullptr && !taken) {
    taken = true;
    std::size_t const leave = std::strtoull(left, nullptr, 10);
    void* held = nullptr;
    if (*available > leave &&
        real<cudaError_t(void**, std::size_t)>("cudaMalloc")(&held, *available - leave) != cudaSuccess) {
      std::abort();
    }
    status = ask(available, total);
  }
  if (std::getenv("HIDE_USED_MEMORY") != nullptr) {
    *available = std::size_t{1} << 50;
  }
  return status;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  static auto* const allocate = real<cudaError_t(void**, std::size_t)>("cudaMalloc");
  return refused() ? cudaErrorMemoryAllocation : allocate(memory, bytes);
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
  static auto* const allocate = real<cudaError_t(void**, std::size_t, unsigned)>("cudaHostAlloc");
  return refused() ? cudaErrorMemoryAllocation : allocate(memory, bytes, flags);
}

cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned flags) {
  static auto* const pin = real<cudaError_t(void*, std::size_t, unsigned)>("cudaHostRegister");
  return refused() ? cudaErrorMemoryAllocation : pin(memory, bytes, flags);
}

cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  static auto* const copy =
      real<cudaError_t(void*, void const*, std::size_t, cudaMemcpyKind, cudaStream_t)>("cudaMemcpyAsync");
  if (delays(stream)) {
    cudaPointerAttributes place{};
    if (cudaPointerGetAttributes(&place, to) == cudaSuccess && place.devicePointer != nullptr) {
      cudaMemsetAsync(place.devicePointer, 0xff, bytes, stream);
      delays(stream);
    }
  }
  return copy(to, from, bytes, kind, stream);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  static auto* const record = real<cudaError_t(cudaEvent_t, cudaStream_t)>("cudaEventRecord");
  delays(stream);
  return record(event, stream);
}

cudaError_t cudaLaunchKernelExC(cudaLaunchConfig_t const* config, void const* kernel, void** arguments) {
  static auto* const launch =
      real<cudaError_t(cudaLaunchConfig_t const*, void const*, void**)>("cudaLaunchKernelExC");
  delays(config->stream);
  return launch(config, kernel, arguments);
}

#if CUDART_VERSION >= 13000
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared, cudaStream_t stream) {
  static auto* const launch =
      real<cudaError_t(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t)>("__cudaLaunchKernel");
#else
cudaError_t cudaLaunchKernel(void const* kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                             cudaStream_t stream) {
  static auto* const launch =
      real<cudaError_t(void const*, dim3, dim3, void**, std::size_t, cudaStream_t)>("cudaLaunchKernel");
#endif
  delays(stream);
  return launch(kernel, grid, block, arguments, shared, stream);
}

}  // extern "C"
