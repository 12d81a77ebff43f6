# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# The components cudnn and nccl: they need the component cuda and the headers of the library, cuDNN or NCCL. Nothing links the
# library: a program loads it when it needs it. Also the functions that FindCUDNN.cmake and FindNCCL.cmake share.

# superoffload_add_nvidia(COMPONENT): sets superoffload_<component>_FOUND, and superoffload_<component>_REASON if that is
# false. A macro, like superoffload_add_cuda().
macro(superoffload_add_nvidia component)
  superoffload_add_components(${superoffload_${component}_LINKS})
  superoffload_add_cuda()
  unset(superoffload_${component}_REASON)
  if(TARGET superoffload::${component})
    _superoffload_add_component(${component})
  else()
    _superoffload_add_component(${component})
    if(superoffload_${component}_FOUND)
      _superoffload_complete_nvidia(${component} ${superoffload_${component}_NEEDS})
    endif()
  endif()
endmacro()

# _superoffload_complete_nvidia(COMPONENT PACKAGE): defines the component's macros, among them the library's path, and adds its
# compiled code: the source with cuDNN's front end; NCCL's kernels, and superoffload::compiled_nccl.
function(_superoffload_complete_nvidia component package)
  string(TOUPPER ${component} name)
  set(library superoffload_${component})
  target_compile_definitions(${library} INTERFACE
    SUPEROFFLOAD_HAS_${name} SUPEROFFLOAD_${name}_LIBRARY="${${package}_LIBRARY}")
  superoffload_write_implementation(source ${component})
  if(component STREQUAL "cudnn")
    add_library(${library}_frontend STATIC EXCLUDE_FROM_ALL ${source})
    set_target_properties(${library}_frontend PROPERTIES
      POSITION_INDEPENDENT_CODE ON CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF UNITY_BUILD OFF)
    target_compile_options(${library}_frontend PRIVATE ${superoffload_WARNINGS} ${superoffload_host_flags})
    target_compile_definitions(${library}_frontend PRIVATE
      $<TARGET_PROPERTY:${library},INTERFACE_COMPILE_DEFINITIONS>)
    target_link_libraries(${library}_frontend PUBLIC superoffload::cuda CUDNN::frontend)
    target_link_libraries(${library} INTERFACE ${library}_frontend)
  else()
    superoffload_add_device_code(${library} superoffload/nccl/sum.cuh)
    target_link_libraries(${library} INTERFACE ${library}_device_code superoffload::cuda)
    if(NOT TARGET superoffload::compiled_cuda)
      return()
    endif()
    superoffload_set_up_compiled(superoffload_compiled_nccl ${source} $<TARGET_OBJECTS:${library}_kernels>)
    set_target_properties(superoffload_compiled_nccl PROPERTIES LINKER_LANGUAGE CXX)
    target_link_libraries(superoffload_compiled_nccl PUBLIC superoffload::compiled_cuda superoffload::nccl)
    add_library(superoffload::compiled_nccl INTERFACE IMPORTED GLOBAL)
    target_link_libraries(superoffload::compiled_nccl INTERFACE superoffload_compiled_nccl)
  endif()
endfunction()

# superoffload_read_version(VARIABLE FILE MACROS...): the numbers of these macros, joined with dots; empty if there is no such
# file.
function(superoffload_read_version variable file)
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

# superoffload_found_headers(PACKAGE TARGET DIRECTORIES...): the end of a find module: sets <PACKAGE>_FOUND, by
# <PACKAGE>_REASON and whether there is a CUDA toolkit, and adds the target for the headers.
macro(superoffload_found_headers package target)
  if(NOT ${package}_REASON AND NOT CUDAToolkit_FOUND)
    set(${package}_REASON "${package} needs a CUDA toolkit 12 or newer; install one or set CUDAToolkit_ROOT")
  endif()
  set(${package}_FOUND TRUE)
  if(${package}_REASON)
    set(${package}_FOUND FALSE)
  elseif(NOT TARGET ${target})
    add_library(${target} INTERFACE IMPORTED GLOBAL)
    target_include_directories(${target} INTERFACE ${ARGN})
    target_link_libraries(${target} INTERFACE CUDA::cudart ${CMAKE_DL_LIBS})
  endif()
endmacro()
