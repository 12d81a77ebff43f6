// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace superoffload::cpu {

/// The instruction sets that the kernels can be compiled for. With SUPEROFFLOAD_COMPILED they are compiled
/// for all sets of the processor's kind, or for those of CMake's SUPEROFFLOAD_INSTRUCTION_SETS; else for the
/// one that the flags of the translation unit name.
enum class instruction_set {
  scalar,
  avx2,
  avx512,
  avx512_bf16,  ///< avx512, with products of bfloat16 by its own instruction
  amx_bf16,     ///< avx512, with products of bfloat16 by the matrix unit
  neon
};
inline constexpr std::array instruction_sets{instruction_set::scalar,   instruction_set::avx2,
                                             instruction_set::avx512,   instruction_set::avx512_bf16,
                                             instruction_set::amx_bf16, instruction_set::neon};

constexpr std::string_view name_of(instruction_set set) {
  switch (set) {
    case instruction_set::scalar:
      return "scalar";
    case instruction_set::avx2:
      return "avx2";
    case instruction_set::avx512:
      return "avx512";
    case instruction_set::avx512_bf16:
      return "avx512_bf16";
    case instruction_set::amx_bf16:
      return "amx_bf16";
    case instruction_set::neon:
      return "neon";
  }
  return "";
}

/// Does this program have kernels for it, and this machine the instructions?
[[nodiscard]] bool supported(instruction_set set) noexcept;

/// The one in use: the best that is supported, or the one that the environment variable SUPEROFFLOAD_ISA
/// names. Decided at the first call. Throws `error` (bad_input) when the variable names none, or one that
/// this machine lacks.
[[nodiscard]] instruction_set active_instruction_set();

/// Kernels launched from now on use `set`, in the whole process. For tests and benchmarks.
/// Throws `error` (bad_input) when this machine lacks it.
void use(instruction_set set);

}  // namespace superoffload::cpu

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cpu/impl/dispatch_inl.hpp>
#endif
