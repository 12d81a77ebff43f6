# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# superoffload::compiled: one translation unit per component, which includes its impl/*_inl.hpp, and one per instruction set
# of the CPU's kernels; the program chooses among the sets at run time. SUPEROFFLOAD_INSTRUCTION_SETS, a list, leaves out sets
# that it does not name; scalar is always there.

# Kernels:
# -ffp-contract=off, -fno-fast-math: every set must give the same bits, with any flags of the consumer.
# -fno-math-errno: a square root is one instruction.
# Eigen=...: Eigen's functions are inline; under one name the linker would keep one set's code for all sets.
# UndefinedBehaviorSanitizer checks the scalar set alone: the others are made from the same templates.
set(superoffload_kernel_flags -ffp-contract=off -fno-fast-math -fno-math-errno)
set(superoffload_kernel_flags_scalar)
set(superoffload_kernel_flags_avx2 -mavx2 -mfma)
set(superoffload_kernel_flags_avx512 -mavx2 -mfma -mavx512f -mavx512cd -mavx512dq -mavx512bw -mavx512vl
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # g++ 12 warns inside its own intrinsics
set(superoffload_kernel_flags_avx512_bf16 ${superoffload_kernel_flags_avx512} -mavx512bf16)
set(superoffload_kernel_flags_amx_bf16 ${superoffload_kernel_flags_avx512_bf16} -mamx-tile -mamx-bf16)
set(superoffload_kernel_flags_neon)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=.*undefined")
  foreach(set avx2 avx512 avx512_bf16 amx_bf16 neon)
    list(APPEND superoffload_kernel_flags_${set} -fno-sanitize=undefined)
  endforeach()
endif()

# All other code that is compiled, which queues kernels, reads files, tokenizes and plans: g++ takes a third less time than for
# -O3, and the programs are as fast (bench/results/host_optimisation.json).
set(superoffload_host_flags
  "$<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-O1;-finline-functions;-ftree-vectorize>")

# superoffload_write_source(VARIABLE NAME LINES...): writes a source of these lines into the consuming build.
function(superoffload_write_source variable name)
  set(source ${CMAKE_BINARY_DIR}/superoffload/${name})
  list(JOIN ARGN "\n" content)
  file(CONFIGURE OUTPUT ${source} CONTENT "${content}\n" @ONLY)
  set(${variable} ${source} PARENT_SCOPE)
endfunction()

# superoffload_write_implementation(VARIABLE COMPONENT): a source with the implementation of all the component's headers;
# empty if there is none.
function(superoffload_write_implementation variable component)
  set(rescan)
  if(superoffload_OWN_BUILD)
    set(rescan CONFIGURE_DEPENDS)
  endif()
  file(GLOB headers ${rescan} RELATIVE ${superoffload_INCLUDE_DIR}
    ${superoffload_INCLUDE_DIR}/superoffload/${component}/impl/*_inl.hpp
    ${superoffload_INCLUDE_DIR}/superoffload/${component}/*/impl/*_inl.hpp)
  set(source)
  if(headers)
    list(TRANSFORM headers REPLACE "(.+)" "#include <\\1>")
    superoffload_write_source(source ${component}.cpp ${headers})
  endif()
  set(${variable} ${source} PARENT_SCOPE)
endfunction()

# superoffload_add_compiled_library(TARGET COMPONENTS...)
function(superoffload_add_compiled_library target)
  set(sources)
  foreach(component IN LISTS ARGN)
    superoffload_write_implementation(source ${component})
    list(APPEND sources ${source})
  endforeach()
  superoffload_set_up_compiled(${target} ${sources})
  if(cpu IN_LIST ARGN)
    superoffload_add_cpu_kernels(${target})
  endif()
endfunction()

# superoffload_set_up_compiled(TARGET SOURCES...): makes it a static library, independent of the consumer's defaults.
function(superoffload_set_up_compiled target)
  add_library(${target} STATIC EXCLUDE_FROM_ALL ${ARGN})
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF UNITY_BUILD OFF)
  target_compile_definitions(${target} PUBLIC SUPEROFFLOAD_COMPILED)
  target_compile_options(${target} PRIVATE ${superoffload_WARNINGS} ${superoffload_host_flags})
endfunction()

function(superoffload_add_cpu_kernels target)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(sets avx2 avx512 avx512_bf16 amx_bf16)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(sets neon)
  else()
    set(sets)
  endif()
  if(SUPEROFFLOAD_INSTRUCTION_SETS)
    foreach(set IN LISTS SUPEROFFLOAD_INSTRUCTION_SETS)
      if(NOT set IN_LIST sets AND NOT set STREQUAL "scalar")
        list(JOIN sets " " all)
        message(FATAL_ERROR "SUPEROFFLOAD_INSTRUCTION_SETS has '${set}': expected some of: scalar ${all}")
      elseif(set MATCHES "_bf16$" AND NOT "avx512" IN_LIST SUPEROFFLOAD_INSTRUCTION_SETS)
        message(FATAL_ERROR "SUPEROFFLOAD_INSTRUCTION_SETS has ${set} and lacks avx512, whose other kernels it uses")
      endif()
    endforeach()
    set(sets ${SUPEROFFLOAD_INSTRUCTION_SETS})
    list(REMOVE_ITEM sets scalar)
  endif()
  foreach(set IN LISTS sets ITEMS scalar)
    string(TOUPPER ${set} upper)
    target_compile_definitions(${target} PRIVATE SUPEROFFLOAD_HAS_${upper})  # for cpu/impl/dispatch_inl.hpp
    set(lines "#define SUPEROFFLOAD_KERNEL_SET ${set}")
    if(set STREQUAL "scalar")
      list(APPEND lines "#define SUPEROFFLOAD_KERNEL_SCALAR")
    endif()
    if(set MATCHES "_bf16$")
      list(APPEND lines "#define SUPEROFFLOAD_KERNEL_LIST bfloat16_products")  # the others are those of avx512
    endif()
    # Eigen without optimisation is 25 times slower. Under sanitizers -O3 takes minutes a source; -O1 finds the same errors.
    # Where there are other sets, the scalar one is for very old processors and for comparison: -O1 takes half the time.
    set(optimisation -O3)
    if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=" OR (sets AND set STREQUAL "scalar"))
      set(optimisation -O1)
    endif()
    superoffload_write_source(source kernels_${set}.cpp ${lines} "#include <superoffload/cpu/kernels/set.hpp>")
    set_source_files_properties(${source} PROPERTIES
      COMPILE_OPTIONS "${optimisation};${superoffload_kernel_flags};${superoffload_kernel_flags_${set}}"
      COMPILE_DEFINITIONS "Eigen=superoffload_eigen_${set}")
    target_sources(${target} PRIVATE ${source})
  endforeach()
endfunction()
