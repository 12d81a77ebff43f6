// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/cpu/instruction_set.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/cpu/kernels/scratch.hpp>
#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cpu/kernels/native.hpp>
#endif

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace superoffload::cpu {

#ifdef SUPEROFFLOAD_COMPILED
/// What is compiled for one instruction set, with the flags of that set: the kernels of a list.
/// SUPEROFFLOAD_HAS_<SET> says that the library has them.
#define SUPEROFFLOAD_DECLARE_SET(set, list)                                    \
  namespace set {                                                              \
  extern kernel::table<cpu::detail::kernel_entry, kernel::list> const kernels; \
  bool contracts();                                                            \
  }
SUPEROFFLOAD_DECLARE_SET(scalar, host_catalogue)
#ifdef SUPEROFFLOAD_HAS_AVX2
SUPEROFFLOAD_DECLARE_SET(avx2, host_catalogue)
#endif
#ifdef SUPEROFFLOAD_HAS_AVX512
SUPEROFFLOAD_DECLARE_SET(avx512, host_catalogue)
#endif
#ifdef SUPEROFFLOAD_HAS_AVX512_BF16
SUPEROFFLOAD_DECLARE_SET(avx512_bf16, bfloat16_products)
#endif
#ifdef SUPEROFFLOAD_HAS_AMX_BF16
SUPEROFFLOAD_DECLARE_SET(amx_bf16, bfloat16_products)
#endif
#ifdef SUPEROFFLOAD_HAS_NEON
SUPEROFFLOAD_DECLARE_SET(neon, host_catalogue)
#endif
#undef SUPEROFFLOAD_DECLARE_SET
#endif

namespace detail {

#ifdef SUPEROFFLOAD_COMPILED
struct choice {
  instruction_set set;
  kernel_table const& (*kernels)();
  bool (*contracts)();
};

template <auto const& all>
kernel_table const& kernels_of() {
  return all;
}

#ifdef SUPEROFFLOAD_HAS_AVX512
template <class... Arguments>
kernel_table replaced(kernel_table all, kernel::table<kernel_entry, kernel::list<Arguments...>> const& by) {
  ((static_cast<kernel_entry<Arguments>&>(all) = by), ...);
  return all;
}

/// Those of avx512, with the products of a set that has no others.
template <auto const& products>
kernel_table const& avx512_with() {
  static kernel_table const all = replaced(avx512::kernels, products);
  return all;
}
#endif

#define SUPEROFFLOAD_CHOICE(set) \
  choice { instruction_set::set, kernels_of<set::kernels>, set::contracts }
/// Best last.
inline choice const choices[] = {
    SUPEROFFLOAD_CHOICE(scalar),
#ifdef SUPEROFFLOAD_HAS_AVX2
    SUPEROFFLOAD_CHOICE(avx2),
#endif
#ifdef SUPEROFFLOAD_HAS_AVX512
    SUPEROFFLOAD_CHOICE(avx512),
#endif
#ifdef SUPEROFFLOAD_HAS_AVX512_BF16
    {instruction_set::avx512_bf16, avx512_with<avx512_bf16::kernels>, avx512_bf16::contracts},
#endif
#ifdef SUPEROFFLOAD_HAS_AMX_BF16
    {instruction_set::amx_bf16, avx512_with<amx_bf16::kernels>, amx_bf16::contracts},
#endif
#ifdef SUPEROFFLOAD_HAS_NEON
    SUPEROFFLOAD_CHOICE(neon),
#endif
};
#undef SUPEROFFLOAD_CHOICE
#else
struct choice {
  instruction_set set;
  bool (*contracts)();
};
/// The set of the translation unit's flags.
inline choice const choices[] = {
    {instruction_set::SUPEROFFLOAD_KERNEL_SET, SUPEROFFLOAD_KERNEL_SET::contracts}};
#endif

#if defined(__x86_64__)
/// Does the processor have AMX with bfloat16, and does Linux let this process use it? A process must ask.
SUPEROFFLOAD_INLINE bool may_use_amx() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned bfloat16_and_tiles = 1U << 22 | 1U << 24;
  constexpr long request_permission = 0x1023, tile_data = 18;  // of <asm/prctl.h>, from Linux 5.16 on
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & bfloat16_and_tiles) == bfloat16_and_tiles &&
         ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}
#endif

/// Does this processor have the instructions of the set, and may this process use them?
SUPEROFFLOAD_INLINE bool processor_has([[maybe_unused]] instruction_set set) noexcept {
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
    case instruction_set::avx512_bf16:
      return processor_has(instruction_set::avx512) && __builtin_cpu_supports("avx512bf16");
    case instruction_set::amx_bf16:
      return processor_has(instruction_set::avx512_bf16) && may_use_amx();
#elif defined(__aarch64__)
    case instruction_set::neon:
      return true;
#endif
    default:
      return false;
  }
}

SUPEROFFLOAD_INLINE std::string supported_names() {
  std::string names;
  for (auto const& one : choices) {
    if (processor_has(one.set)) {
      names += (names.empty() ? "" : ", ") + std::string{name_of(one.set)};
    }
  }
  return names;
}

SUPEROFFLOAD_INLINE choice const* first_choice() {
  char const* const wanted = std::getenv("SUPEROFFLOAD_ISA");
  expect(
      !supported_names().empty(), exit_code::bad_input, "this program was compiled for ",
      name_of(choices[0].set),
      ", which this processor or Linux does not let it use: compile it with -march=native here, or for less "
      "than that; -mno-amx-bf16 leaves AMX out");
  choice const* best = nullptr;
  for (auto const& one : choices) {
    if (processor_has(one.set) && (wanted == nullptr || wanted == name_of(one.set))) {
      best = &one;
    }
  }
  expect(best != nullptr, exit_code::bad_input, "environment variable SUPEROFFLOAD_ISA is '",
         printable(wanted != nullptr ? wanted : ""), "': expected one of ", supported_names(),
         " on this machine; unset it to use the best");
  expect(!best->contracts(), exit_code::bad_input, "the kernels for ", name_of(best->set),
         " were compiled with fused multiplication and addition, which changes results: compile with "
         "-ffp-contract=off");
  return best;
}

SUPEROFFLOAD_INLINE std::atomic<choice const*>& active() {
  static std::atomic<choice const*> chosen{first_choice()};
  return chosen;
}

#ifdef SUPEROFFLOAD_COMPILED
SUPEROFFLOAD_INLINE kernel_table const& active_kernels() {
  return active().load(std::memory_order_relaxed)->kernels();
}
#else
template <class Arguments>
kernel_entry<Arguments> const& active_kernel() {
  static_cast<void>(active());  // refuses a processor that lacks the set
  return SUPEROFFLOAD_KERNEL_SET::kernel_of<Arguments>;
}
#endif

SUPEROFFLOAD_INLINE void* thread_scratch(std::size_t bytes) {
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

SUPEROFFLOAD_INLINE bool supported(instruction_set set) noexcept {
  for (auto const& one : detail::choices) {
    if (one.set == set) {
      return detail::processor_has(set);
    }
  }
  return false;
}

SUPEROFFLOAD_INLINE instruction_set active_instruction_set() {
  return detail::active().load(std::memory_order_relaxed)->set;
}

SUPEROFFLOAD_INLINE void use(instruction_set set) {
  for (auto const& one : detail::choices) {
    if (one.set == set && detail::processor_has(set)) {
      detail::active().store(&one, std::memory_order_relaxed);
      return;
    }
  }
  fail(exit_code::bad_input, "instruction set ", name_of(set), " is not for this machine: expected one of ",
       detail::supported_names());
}

}  // namespace superoffload::cpu
