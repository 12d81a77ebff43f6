# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# NCCL::headers; NCCL_LIBRARY, the path of the library on this machine; NCCL_VERSION; NCCL_REASON if NCCL_FOUND is false.
# Nothing is linked: programs load the library.
#
# Searches next to the toolkit, in the system's directories, and in pip's layout: with S the site-packages,
# CMAKE_PREFIX_PATH=S/nvidia/nccl finds nvidia-nccl-cu13.

include(${CMAKE_CURRENT_LIST_DIR}/superoffload-nvidia.cmake)

find_package(CUDAToolkit 12 QUIET)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${CUDAToolkit_LIBRARY_DIR})
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)

superoffload_read_version(NCCL_VERSION "${NCCL_INCLUDE_DIR}/nccl.h" NCCL_MAJOR NCCL_MINOR NCCL_PATCH)

unset(NCCL_REASON)
if(NOT NCCL_INCLUDE_DIR OR NOT NCCL_LIBRARY)
  set(NCCL_REASON
    "NCCL was not found; install it (NVIDIA's packages, or pip install nvidia-nccl-cu13) and add its prefix to CMAKE_PREFIX_PATH")
elseif(NCCL_VERSION VERSION_LESS 2.18 OR NCCL_VERSION VERSION_GREATER_EQUAL 3)
  set(NCCL_REASON "NCCL ${NCCL_VERSION} in ${NCCL_INCLUDE_DIR} is not used; expected 2.18 or newer")
endif()
superoffload_found_headers(NCCL NCCL::headers ${NCCL_INCLUDE_DIR})
