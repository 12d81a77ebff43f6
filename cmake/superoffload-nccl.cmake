# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# The component nccl, beside cuda and where NCCL's header is. The library itself is loaded when a program asks for it.

# superoffload_add_nccl(): sets superoffload_nccl_FOUND, and superoffload_nccl_REASON where it is false. A macro, as
# superoffload_add_cuda() is one.
macro(superoffload_add_nccl)
  set(superoffload_nccl_FOUND FALSE)
  unset(superoffload_nccl_REASON)
  superoffload_add_components(comm)
  superoffload_add_cuda()
  if(NOT superoffload_cuda_FOUND)
    set(superoffload_nccl_REASON "it needs cuda: ${superoffload_cuda_REASON}")
  elseif(NOT superoffload_comm_FOUND)
    set(superoffload_nccl_REASON "it needs comm: ${superoffload_comm_REASON}")
  else()
    list(PREPEND CMAKE_MODULE_PATH ${superoffload_CMAKE_DIR})
    find_package(NCCL QUIET)
    list(POP_FRONT CMAKE_MODULE_PATH)
    if(NOT NCCL_FOUND)
      set(superoffload_nccl_REASON "${NCCL_REASON}")
      if(NOT NCCL_REASON)  # the search itself is switched off
        set(superoffload_nccl_REASON "NCCL was not looked for")
      endif()
    else()
      set(superoffload_create_nccl TRUE)
      if(TARGET superoffload::nccl)
        set(superoffload_create_nccl FALSE)
      endif()
      _superoffload_add_component(nccl)
      if(superoffload_create_nccl)
        superoffload_add_device_code(superoffload_nccl_kernels ${superoffload_INCLUDE_DIR}/superoffload/nccl/sum.cu)
        target_sources(superoffload_nccl PRIVATE $<TARGET_OBJECTS:superoffload_nccl_kernels>)
        set_target_properties(superoffload_nccl PROPERTIES LINKER_LANGUAGE CXX)
        target_compile_definitions(superoffload_nccl
          PUBLIC SUPEROFFLOAD_HAS_NCCL PRIVATE SUPEROFFLOAD_NCCL_LIBRARY="${NCCL_LIBRARY}")
      endif()
    endif()
  endif()
endmacro()
