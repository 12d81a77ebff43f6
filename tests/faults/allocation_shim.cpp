// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Preloaded into a program, it lets allocations fail.
//
//   SUPEROFFLOAD_ALLOCATION_FAULT  NUMBER,LASTING: the allocation of this number, from 0 and from main on,
//   fails, and
//                                  with LASTING 1 all later ones that are as large or larger
//   SUPEROFFLOAD_ALLOCATION_COUNT  the file to which the number of allocations is written when main returns
//   SUPEROFFLOAD_ALLOCATION_FIRED  a file that is made when an allocation fails
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {

std::atomic<long> count{0};
std::atomic<std::size_t> least{0};
long at = -1;
int lasting = 0;
bool counts = false;

void note(char const* variable_name, long number) {
  char const* const file = std::getenv(variable_name);
  if (file == nullptr) {
    return;
  }
  char text[32];
  auto const size = std::snprintf(text, sizeof text, "%ld\n", number);
  auto const made = ::syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT, 0600);
  ::syscall(SYS_write, made, text, static_cast<std::size_t>(size));
  ::syscall(SYS_close, made);
}

int (*real_main)(int, char**, char**) = nullptr;

int counted_main(int argc, char** argv, char** environment) {
  char const* const fault = std::getenv("SUPEROFFLOAD_ALLOCATION_FAULT");
  if (fault != nullptr) {
    std::sscanf(fault, "%ld,%d", &at, &lasting);
  }
  counts = true;
  int const status = real_main(argc, argv, environment);
  counts = false;
  note("SUPEROFFLOAD_ALLOCATION_COUNT", count);
  return status;
}

bool fails(std::size_t bytes) {
  if (!counts) {
    return false;
  }
  long const number = count++;
  if (at < 0 || number < at || (number > at && (lasting == 0 || bytes < least))) {
    return false;
  }
  if (number == at) {
    least = bytes;
    note("SUPEROFFLOAD_ALLOCATION_FIRED", number);
  }
  errno = ENOMEM;
  return true;
}

}  // namespace

extern "C" {

/// Calls main. What is allocated before, by the loader and for static objects, and after does not count.
int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*rtld_fini)(), void* stack_end) {
  real_main = main;
  static auto* const really =
      reinterpret_cast<decltype(&__libc_start_main)>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return really(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

void* malloc(std::size_t bytes) noexcept { return fails(bytes) ? nullptr : __libc_malloc(bytes); }
void* calloc(std::size_t n, std::size_t bytes) noexcept {
  return fails(n * bytes) ? nullptr : __libc_calloc(n, bytes);
}
void* realloc(void* memory, std::size_t bytes) noexcept {
  return fails(bytes) ? nullptr : __libc_realloc(memory, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return fails(bytes) ? nullptr : __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept { return memalign(alignment, bytes); }
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) noexcept {
  *memory = memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
void* mmap(void* where, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  if ((flags & MAP_ANONYMOUS) != 0 && fails(bytes)) {
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(::syscall(SYS_mmap, where, bytes, protection, flags, file, offset));
}
void* mmap64(void* where, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  return mmap(where, bytes, protection, flags, file, offset);
}

}  // extern "C"
