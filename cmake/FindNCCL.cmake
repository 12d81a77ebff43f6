# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# NCCL::headers; NCCL_LIBRARY, where the library is now; NCCL_VERSION; NCCL_REASON where NCCL_FOUND is false. Nothing is
# linked: programs load the library.
#
# Beside the toolkit, in the system's directories, and as pip lays it out: with S the site-packages, nvidia-nccl-cu13 is
# found by CMAKE_PREFIX_PATH=S/nvidia/nccl.

find_package(CUDAToolkit 12 QUIET)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${CUDAToolkit_LIBRARY_DIR})
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)

set(NCCL_VERSION)
if(EXISTS "${NCCL_INCLUDE_DIR}/nccl.h")
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h line REGEX "#define NCCL_${part} +[0-9]+" LIMIT_COUNT 1)
    string(REGEX MATCH "[0-9]+$" number "${line}")
    list(APPEND NCCL_VERSION "${number}")
  endforeach()
  list(JOIN NCCL_VERSION "." NCCL_VERSION)
endif()

unset(NCCL_REASON)
if(NOT NCCL_INCLUDE_DIR OR NOT NCCL_LIBRARY)
  set(NCCL_REASON
    "NCCL was not found; install it (NVIDIA's packages, or pip install nvidia-nccl-cu13) and add its prefix to CMAKE_PREFIX_PATH")
elseif(NCCL_VERSION VERSION_LESS 2.18 OR NCCL_VERSION VERSION_GREATER_EQUAL 3)
  set(NCCL_REASON "NCCL ${NCCL_VERSION} in ${NCCL_INCLUDE_DIR} is not used; expected 2.18 or newer")
elseif(NOT CUDAToolkit_FOUND)
  set(NCCL_REASON "NCCL needs a CUDA toolkit 12 or newer; install one or set CUDAToolkit_ROOT")
endif()
set(NCCL_FOUND TRUE)
if(NCCL_REASON)
  set(NCCL_FOUND FALSE)
endif()

if(NCCL_FOUND AND NOT TARGET NCCL::headers)
  add_library(NCCL::headers INTERFACE IMPORTED GLOBAL)
  target_include_directories(NCCL::headers INTERFACE ${NCCL_INCLUDE_DIR})
  target_link_libraries(NCCL::headers INTERFACE CUDA::cudart ${CMAKE_DL_LIBS})
endif()
