# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# CMake 3.25 knows no nvcc flag for C++20, although nvcc has one since 12.0. Our targets require C++20, and so it is required
# for CUDA, too. Without the flag, no target with CUDA sources or objects can be generated with Makefiles, and no consumer's
# target that links ours can be generated at all.
#
# In the cache, because the directories of a consumer's targets must see it, and this one may be below them.

if(CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA" AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.0
    AND NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20" CACHE INTERNAL "")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20" CACHE INTERNAL "")  # nvcc has no gnu++20
endif()
