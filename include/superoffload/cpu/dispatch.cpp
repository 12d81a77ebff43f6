// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/cpu/instruction_set.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/cpu/kernels/scratch.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

namespace superoffload::cpu {

namespace scalar {
extern detail::kernel_table const kernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern detail::kernel_table const kernels;
}
namespace avx512 {
extern detail::kernel_table const kernels;
}
#elif defined(__aarch64__)
namespace neon {
extern detail::kernel_table const kernels;
}
#endif

namespace {

struct choice {
  instruction_set set;
  detail::kernel_table const* kernels;
};

/// Best last.
choice const choices[] = {
    {instruction_set::scalar, &scalar::kernels},
#if defined(__x86_64__)
    {instruction_set::avx2, &avx2::kernels},
    {instruction_set::avx512, &avx512::kernels},
#elif defined(__aarch64__)
    {instruction_set::neon, &neon::kernels},
#endif
};

std::string supported_names() {
  std::string names;
  for (auto const& one : choices) {
    if (supported(one.set)) {
      names += (names.empty() ? "" : ", ") + std::string{name_of(one.set)};
    }
  }
  return names;
}

choice const* first_choice() {
  char const* const wanted = std::getenv("SUPEROFFLOAD_ISA");
  choice const* best = nullptr;
  for (auto const& one : choices) {
    if (supported(one.set) && (wanted == nullptr || wanted == name_of(one.set))) {
      best = &one;
    }
  }
  expect(best != nullptr, exit_code::bad_input, "environment variable SUPEROFFLOAD_ISA is '",
         printable(wanted != nullptr ? wanted : ""), "': expected one of ", supported_names(),
         " on this machine; unset it to use the best");
  return best;
}

std::atomic<choice const*>& active() {
  static std::atomic<choice const*> chosen{first_choice()};
  return chosen;
}

}  // namespace

bool supported(instruction_set set) noexcept {
  switch (set) {
    case instruction_set::scalar:
      return true;
#if defined(__x86_64__)
    case instruction_set::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case instruction_set::avx512:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#elif defined(__aarch64__)
    case instruction_set::neon:
      return true;
#endif
    default:
      return false;
  }
}

instruction_set active_instruction_set() { return active().load(std::memory_order_relaxed)->set; }

void use(instruction_set set) {
  for (auto const& one : choices) {
    if (one.set == set && supported(set)) {
      active().store(&one, std::memory_order_relaxed);
      return;
    }
  }
  fail(exit_code::bad_input, "instruction set ", name_of(set), " is not for this machine: expected one of ",
       supported_names());
}

namespace detail {

kernel_table const& active_kernels() { return *active().load(std::memory_order_relaxed)->kernels; }

void* thread_scratch(std::size_t bytes) {
  constexpr std::align_val_t alignment{64};
  struct release {
    void operator()(void* memory) const noexcept { ::operator delete(memory, alignment); }
  };
  thread_local std::unique_ptr<void, release> memory;
  thread_local std::size_t size = 0;
  if (bytes > size) {
    memory.reset();
    size = 0;
    memory.reset(::operator new(bytes, alignment));
    size = bytes;
  }
  return memory.get();
}

}  // namespace detail

}  // namespace superoffload::cpu
