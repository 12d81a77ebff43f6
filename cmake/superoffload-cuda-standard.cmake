# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# CMake 3.25 knows no flag of nvcc's for C++20, which nvcc has since 12.0. Then no target that has CUDA sources, or
# objects made of them, can be generated with Makefiles, and none of a consumer's that links ours can with any generator:
# C++20, which our targets ask for, is asked of CUDA, too.
#
# In the cache, as the directories of a consumer's targets must see it, and this one may be below them.

if(CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA" AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.0
    AND NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20" CACHE INTERNAL "")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20" CACHE INTERNAL "")  # nvcc has no gnu++20
endif()
