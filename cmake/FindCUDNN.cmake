# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# CUDNN::frontend, the headers of cuDNN and of its front end; CUDNN_LIBRARY, the path of the library on this machine;
# CUDNN_VERSION, CUDNN_FRONTEND_VERSION; CUDNN_REASON if CUDNN_FOUND is false. Nothing is linked: the front end loads the
# library.
#
# Searches next to the toolkit, and in pip's layout: with S the site-packages, CMAKE_PREFIX_PATH=S finds nvidia-cudnn-frontend,
# and S/nvidia/cudnn finds nvidia-cudnn-cu13, which has no libcudnn.so.

include(${CMAKE_CURRENT_LIST_DIR}/superoffload-nvidia.cmake)

find_package(CUDAToolkit 12 QUIET)
find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${CUDAToolkit_LIBRARY_DIR})
find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
mark_as_advanced(CUDNN_INCLUDE_DIR CUDNN_LIBRARY CUDNN_FRONTEND_INCLUDE_DIR)

superoffload_read_version(CUDNN_VERSION "${CUDNN_INCLUDE_DIR}/cudnn_version.h" CUDNN_MAJOR CUDNN_MINOR CUDNN_PATCHLEVEL)
superoffload_read_version(CUDNN_FRONTEND_VERSION "${CUDNN_FRONTEND_INCLUDE_DIR}/cudnn_frontend_version.h"
  CUDNN_FRONTEND_MAJOR_VERSION CUDNN_FRONTEND_MINOR_VERSION CUDNN_FRONTEND_PATCH_VERSION)

unset(CUDNN_REASON)
if(NOT CUDNN_INCLUDE_DIR OR NOT CUDNN_LIBRARY)
  set(CUDNN_REASON
    "cuDNN was not found; install it (NVIDIA's packages, or pip install nvidia-cudnn-cu13) and add its prefix to CMAKE_PREFIX_PATH")
elseif(CUDNN_VERSION VERSION_LESS 9.13 OR CUDNN_VERSION VERSION_EQUAL 9.14.0 OR CUDNN_VERSION VERSION_GREATER_EQUAL 10)
  set(CUDNN_REASON "cuDNN ${CUDNN_VERSION} in ${CUDNN_INCLUDE_DIR} is not used; expected 9.13 or newer, but not 9.14.0")
elseif(NOT CUDNN_FRONTEND_INCLUDE_DIR)
  set(CUDNN_REASON
    "cudnn_frontend.h was not found; install it (pip install nvidia-cudnn-frontend) and add the directory that has its include to CMAKE_PREFIX_PATH")
elseif(CUDNN_FRONTEND_VERSION VERSION_LESS 1.14.1)
  set(CUDNN_REASON
    "cuDNN's front end ${CUDNN_FRONTEND_VERSION} in ${CUDNN_FRONTEND_INCLUDE_DIR} is too old; expected 1.14.1 or newer")
endif()
superoffload_found_headers(CUDNN CUDNN::frontend ${CUDNN_FRONTEND_INCLUDE_DIR} ${CUDNN_INCLUDE_DIR})
