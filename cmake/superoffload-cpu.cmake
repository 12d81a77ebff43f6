# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# cpu/kernels_<set>.cpp is compiled with the flags of its instruction set, and the program chooses at run time.
#
# -ffp-contract=off, -fno-fast-math: every set must give the same bits, whatever the consumer's flags are.
# -fno-math-errno: a square root is one instruction. -O3: Eigen without optimisation is 25 times slower.
# Eigen=...: Eigen's functions are inline; under one name the linker would keep one set's code for all sets.
# Under sanitizers -O3 takes minutes a source; -O1 finds as much.
set(superoffload_kernel_flags -ffp-contract=off -fno-fast-math -fno-math-errno)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
  list(PREPEND superoffload_kernel_flags -O1)
else()
  list(PREPEND superoffload_kernel_flags -O3)
endif()
set(superoffload_kernel_flags_scalar)
set(superoffload_kernel_flags_avx2 -mavx2 -mfma)
set(superoffload_kernel_flags_avx512 -mavx2 -mfma -mavx512f -mavx512cd -mavx512dq -mavx512bw -mavx512vl
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # g++ 12 warns inside its own intrinsics
set(superoffload_kernel_flags_neon)

# Removes from the list of sources the kernels of other processors and gives the rest their flags.
function(superoffload_select_cpu_kernels sources_variable)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(sets scalar avx2 avx512)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(sets scalar neon)
  else()
    set(sets scalar)
  endif()
  set(selected)
  foreach(source IN LISTS ${sources_variable})
    if(source MATCHES "/kernels_([a-z0-9]+)\\.cpp$")
      set(set ${CMAKE_MATCH_1})
      if(NOT set IN_LIST sets)
        continue()
      endif()
      set_source_files_properties(${source} PROPERTIES
        COMPILE_OPTIONS "${superoffload_kernel_flags};${superoffload_kernel_flags_${set}}"
        COMPILE_DEFINITIONS "Eigen=superoffload_eigen_${set}")
    endif()
    list(APPEND selected ${source})
  endforeach()
  set(${sources_variable} ${selected} PARENT_SCOPE)
endfunction()
