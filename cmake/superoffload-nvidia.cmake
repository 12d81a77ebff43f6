# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# The components cudnn and nccl, beside cuda and where the headers of that library of NVIDIA's are. The library itself is
# loaded when a program asks for it: nothing is linked. And what FindCUDNN.cmake and FindNCCL.cmake share.

# superoffload_add_nvidia(COMPONENT): sets superoffload_<component>_FOUND, and superoffload_<component>_REASON where it
# is false. A macro, as superoffload_add_cuda() is one.
macro(superoffload_add_nvidia component)
  superoffload_add_components(${superoffload_${component}_LINKS})
  superoffload_add_cuda()
  unset(superoffload_${component}_REASON)
  if(TARGET superoffload::${component})
    _superoffload_add_component(${component})
  else()
    _superoffload_add_component(${component})
    if(superoffload_${component}_FOUND)
      _superoffload_complete_nvidia(${component} ${superoffload_${component}_PRIVATE_NEEDS})
    endif()
  endif()
endmacro()

# _superoffload_complete_nvidia(COMPONENT PACKAGE): says that the component is there and where its library is, and adds
# its kernels, if it has some.
function(_superoffload_complete_nvidia component package)
  string(TOUPPER ${component} name)
  target_compile_definitions(superoffload_${component}
    PUBLIC SUPEROFFLOAD_HAS_${name} PRIVATE SUPEROFFLOAD_${name}_LIBRARY="${${package}_LIBRARY}")
  file(GLOB kernels ${superoffload_INCLUDE_DIR}/superoffload/${component}/*.cu)
  if(kernels)
    superoffload_add_device_code(superoffload_${component}_kernels ${kernels})
    target_sources(superoffload_${component} PRIVATE $<TARGET_OBJECTS:superoffload_${component}_kernels>)
    set_target_properties(superoffload_${component} PROPERTIES LINKER_LANGUAGE CXX)
  endif()
endfunction()

# superoffload_read_version(VARIABLE FILE MACROS...): the numbers of these macros, with dots between them; empty where
# there is no such file.
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

# superoffload_found_headers(PACKAGE TARGET DIRECTORIES...): the end of a find module: <PACKAGE>_FOUND, by <PACKAGE>_REASON
# and whether there is a CUDA toolkit, and the target, which is headers.
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
