# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# CUDNN::frontend, the headers of cuDNN and of its front end; CUDNN_LIBRARY, where the library is now; CUDNN_VERSION,
# CUDNN_FRONTEND_VERSION; CUDNN_REASON where CUDNN_FOUND is false. Nothing is linked: the front end loads the library.
#
# Beside the toolkit, and as pip lays them out: with S the site-packages, nvidia-cudnn-frontend is found by
# CMAKE_PREFIX_PATH=S, and nvidia-cudnn-cu13, which has no libcudnn.so, by S/nvidia/cudnn.

find_package(CUDAToolkit 12 QUIET)
find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${CUDAToolkit_LIBRARY_DIR})
find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
mark_as_advanced(CUDNN_INCLUDE_DIR CUDNN_LIBRARY CUDNN_FRONTEND_INCLUDE_DIR)

# _cudnn_version(VARIABLE FILE MACROS...): the numbers of these macros, with dots between them.
function(_cudnn_version variable file)
  set(version)
  if(EXISTS ${file})
    foreach(part IN LISTS ARGN)
      file(STRINGS ${file} line REGEX "#define +${part} +[0-9]+" LIMIT_COUNT 1)
      string(REGEX MATCH "[0-9]+$" number "${line}")
      list(APPEND version "${number}")
    endforeach()
    list(JOIN version "." version)
  endif()
  set(${variable} "${version}" PARENT_SCOPE)
endfunction()
_cudnn_version(CUDNN_VERSION "${CUDNN_INCLUDE_DIR}/cudnn_version.h" CUDNN_MAJOR CUDNN_MINOR CUDNN_PATCHLEVEL)
_cudnn_version(CUDNN_FRONTEND_VERSION "${CUDNN_FRONTEND_INCLUDE_DIR}/cudnn_frontend_version.h"
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
elseif(NOT CUDAToolkit_FOUND)
  set(CUDNN_REASON "cuDNN needs a CUDA toolkit 12 or newer; install one or set CUDAToolkit_ROOT")
endif()
set(CUDNN_FOUND TRUE)
if(CUDNN_REASON)
  set(CUDNN_FOUND FALSE)
endif()

if(CUDNN_FOUND AND NOT TARGET CUDNN::frontend)
  add_library(CUDNN::frontend INTERFACE IMPORTED GLOBAL)
  target_include_directories(CUDNN::frontend INTERFACE ${CUDNN_FRONTEND_INCLUDE_DIR} ${CUDNN_INCLUDE_DIR})
  target_link_libraries(CUDNN::frontend INTERFACE CUDA::cudart ${CMAKE_DL_LIBS})
endif()
