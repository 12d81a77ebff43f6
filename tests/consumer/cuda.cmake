# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# CUDA with Makefiles, which require more of a target than Ninja does, and CMake as users call it: `cmake -S . -B build`.
# This project with its programs and tests; then a consumer with CUDA sources of its own, once with an install tree and once
# with this project as a subdirectory, which must be C++20 for nvcc, too. From each, a CUDA source is compiled that takes
# seconds.

set(home ${ROOT}/cuda)
file(REMOVE_RECURSE ${home})
set(ENV{CMAKE_GENERATOR} "Unix Makefiles")
set(ENV{CUDACXX} ${CUDA_COMPILER})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message("${output}")  # apart: a fatal message would be wrapped
    message(FATAL_ERROR "'${command}' ended with ${result}")
  endif()
endfunction()

set(toolchain -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
  -D CMAKE_CUDA_COMPILER_LAUNCHER=${LAUNCHER})
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${home}/own ${toolchain} -D SUPEROFFLOAD_BUILD_TESTS=ON)
run(${CMAKE_COMMAND} --build ${home}/own --target examples_faulty_runtime)

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${home}/superoffload --component superoffload_development)
file(WRITE ${home}/consumer/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX CUDA)
if(SUPEROFFLOAD_SOURCE)
  set(SUPEROFFLOAD_CUDA ON)
  add_subdirectory(\${SUPEROFFLOAD_SOURCE} superoffload)
else()
  find_package(superoffload 0.1 CONFIG REQUIRED COMPONENTS cuda)
endif()
add_library(kernel STATIC kernel.cu)
target_link_libraries(kernel PUBLIC superoffload::cuda)
add_executable(program main.cpp)
target_link_libraries(program PRIVATE kernel)
")
file(WRITE ${home}/consumer/kernel.cu "#include <superoffload/core/dtype.hpp>
static_assert(__cplusplus >= 202002L);
template <class T> concept number = requires(T a) { a + a; };
template <number T> __global__ void twice(T* x) { x[threadIdx.x] += x[threadIdx.x]; }
void run(float* x, int n) { twice<<<1, n>>>(x); }
")
file(WRITE ${home}/consumer/main.cpp "void run(float*, int);\nint main() { run(nullptr, 0); }\n")
foreach(way "CMAKE_PREFIX_PATH=${home}/superoffload" "SUPEROFFLOAD_SOURCE=${SOURCE}")
  string(REGEX REPLACE "=.*" "" name ${way})
  run(${CMAKE_COMMAND} -S ${home}/consumer -B ${home}/${name} ${toolchain} -D ${way} -D CMAKE_CUDA_ARCHITECTURES=90)
  run(${CMAKE_COMMAND} --build ${home}/${name} --target kernel.cu.o)
endforeach()
