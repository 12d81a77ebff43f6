# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# The component cuda, which needs a CUDA toolkit. Its kernels are one source with one include for nvcc, compiled into a static
# library of the consuming build with its own standard and architectures, also if the consumer's project has not enabled the
# language. superoffload::compiled_cuda contains the compiled host code as well.

set(SUPEROFFLOAD_CUDA_ARCHITECTURES 90a-real CACHE STRING "What superoffload's kernels are compiled for")

# superoffload_add_cuda(): sets superoffload_cuda_FOUND, and superoffload_cuda_REASON if that is false. It is a macro to be
# called at file scope, because a language can only be enabled there.
macro(superoffload_add_cuda)
  set(superoffload_cuda_FOUND FALSE)
  unset(superoffload_cuda_REASON)
  superoffload_add_components(kernel)
  find_package(CUDAToolkit 12 QUIET)
  if(NOT superoffload_kernel_FOUND)
    set(superoffload_cuda_REASON "it needs kernel: ${superoffload_kernel_REASON}")
  elseif(NOT CUDAToolkit_FOUND OR NOT TARGET CUDA::cudart OR NOT TARGET CUDA::cublasLt)
    set(superoffload_cuda_REASON
      "no CUDA toolkit 12 or newer with cuBLAS was found; install one or set CUDAToolkit_ROOT")
  else()
    if(NOT CMAKE_CUDA_COMPILER)
      find_program(superoffload_NVCC nvcc HINTS ${CUDAToolkit_BIN_DIR} NO_CACHE)
      if(superoffload_NVCC)
        set(CMAKE_CUDA_COMPILER ${superoffload_NVCC} CACHE FILEPATH "")
      endif()
    endif()
    if(NOT CMAKE_CUDA_COMPILER)
      set(superoffload_cuda_REASON "the CUDA toolkit in ${CUDAToolkit_TARGET_DIR} has no nvcc")
    else()
      if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
        set(CMAKE_CUDA_ARCHITECTURES ${SUPEROFFLOAD_CUDA_ARCHITECTURES} CACHE STRING "")
      endif()
      enable_language(CUDA)
      include(${superoffload_CMAKE_DIR}/superoffload-cuda-standard.cmake)
      set(superoffload_cuda_FOUND TRUE)
      _superoffload_add_cuda_library()
    endif()
  endif()
endmacro()

# superoffload_add_device_code(TARGET HEADER): an object library of the code for nvcc, TARGET_kernels, and a static library
# of it, TARGET_device_code.
function(superoffload_add_device_code name header)
  set(target ${name}_kernels)
  superoffload_write_source(source ${name}.cu "#include <${header}>")
  # Separate and linked to nothing: where CMake knows no flag for C++20 with this nvcc (3.25 and 13.0), the standard that our
  # targets require must not reach it.
  unset(CMAKE_CUDA_STANDARD)
  unset(CMAKE_CUDA_EXTENSIONS)
  unset(CMAKE_CUDA_SEPARABLE_COMPILATION)
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${source})
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF CUDA_ARCHITECTURES "${SUPEROFFLOAD_CUDA_ARCHITECTURES}")
  target_include_directories(${target} PRIVATE ${superoffload_INCLUDE_DIR})
  # -O3: device code without optimisation is hundreds of times slower. Code that must not be fused prevents it itself.
  if("cuda_std_20" IN_LIST CMAKE_CUDA_COMPILE_FEATURES)
    set_target_properties(${target} PROPERTIES CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON)
  else()
    set_target_properties(${target} PROPERTIES CUDA_EXTENSIONS ON)
    target_compile_options(${target} PRIVATE -std=c++20)
  endif()
  target_compile_options(${target} PRIVATE -O3 --expt-relaxed-constexpr
    $<$<BOOL:${superoffload_OWN_BUILD}>:--Werror=all-warnings>)
  add_library(${name}_device_code STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${target}>)
  set_target_properties(${name}_device_code PROPERTIES LINKER_LANGUAGE CXX)
endfunction()

function(_superoffload_add_cuda_library)
  if(TARGET superoffload::cuda)
    return()
  endif()
  superoffload_add_device_code(superoffload_cuda superoffload/cuda/kernels.cuh)
  set(needs superoffload::kernel CUDA::cudart CUDA::cublasLt)
  set(parts device gemms tuning)
  if(TARGET CUDA::nvtx3)  # if the toolkit has its headers; otherwise there is no profile::nvtx
    list(APPEND needs CUDA::nvtx3 ${CMAKE_DL_LIBS})
    list(APPEND parts nvtx)
  endif()
  add_library(superoffload_cuda INTERFACE)
  target_link_libraries(superoffload_cuda INTERFACE superoffload_cuda_device_code ${needs})
  target_compile_definitions(superoffload_cuda INTERFACE SUPEROFFLOAD_HAS_CUDA)

  list(TRANSFORM parts REPLACE "(.+)" "#include <superoffload/cuda/impl/\\1_inl.hpp>" OUTPUT_VARIABLE includes)
  superoffload_write_source(source cuda.cpp ${includes})
  add_library(superoffload::cuda INTERFACE IMPORTED GLOBAL)
  target_link_libraries(superoffload::cuda INTERFACE superoffload_cuda)
  if(NOT TARGET superoffload::compiled)
    return()  # it was not requested
  endif()
  superoffload_set_up_compiled(superoffload_compiled_cuda ${source} $<TARGET_OBJECTS:superoffload_cuda_kernels>)
  set_target_properties(superoffload_compiled_cuda PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(superoffload_compiled_cuda PUBLIC superoffload::compiled ${needs})
  target_compile_definitions(superoffload_compiled_cuda PUBLIC SUPEROFFLOAD_HAS_CUDA)
  add_library(superoffload::compiled_cuda INTERFACE IMPORTED GLOBAL)
  target_link_libraries(superoffload::compiled_cuda INTERFACE superoffload_compiled_cuda)
endfunction()
