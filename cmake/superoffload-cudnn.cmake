# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# The component cudnn, beside cuda and where cuDNN's headers and its front end's are. The library itself is loaded when
# a program asks for it.

# superoffload_add_cudnn(): sets superoffload_cudnn_FOUND, and superoffload_cudnn_REASON where it is false. A macro, as
# superoffload_add_cuda() is one.
macro(superoffload_add_cudnn)
  set(superoffload_cudnn_FOUND FALSE)
  unset(superoffload_cudnn_REASON)
  superoffload_add_cuda()
  if(NOT superoffload_cuda_FOUND)
    set(superoffload_cudnn_REASON "it needs cuda: ${superoffload_cuda_REASON}")
  else()
    list(PREPEND CMAKE_MODULE_PATH ${superoffload_CMAKE_DIR})
    find_package(CUDNN QUIET)
    list(POP_FRONT CMAKE_MODULE_PATH)
    if(NOT CUDNN_FOUND)
      set(superoffload_cudnn_REASON "${CUDNN_REASON}")
      if(NOT CUDNN_REASON)  # the search itself is switched off
        set(superoffload_cudnn_REASON "cuDNN was not looked for")
      endif()
    else()
      set(superoffload_create_cudnn TRUE)
      if(TARGET superoffload::cudnn)
        set(superoffload_create_cudnn FALSE)
      endif()
      _superoffload_add_component(cudnn)
      if(superoffload_create_cudnn)
        target_compile_definitions(superoffload_cudnn
          PUBLIC SUPEROFFLOAD_HAS_CUDNN PRIVATE SUPEROFFLOAD_CUDNN_LIBRARY="${CUDNN_LIBRARY}")
      endif()
    endif()
  endif()
endmacro()
