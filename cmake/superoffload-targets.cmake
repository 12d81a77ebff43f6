# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# The targets superoffload::<component>. This project's CMakeLists.txt and the package configuration both include this file,
# so that a consumer gets the same targets from a build tree, an install tree or a subdirectory.
#
# A component is a directory of headers, and header-only. superoffload::compiled is an alternative: the same functions in one
# static library, which the consuming build compiles with its own compiler and flags (superoffload-compiled.cmake).

# In the order of their dependencies.
set(superoffload_COMPONENTS core kernel io text data cpu comm autograd optim zero offload nn model train compiled)
# On request only, and no part of superoffload::superoffload.
set(superoffload_optional_COMPONENTS cli mpi)

set(superoffload_kernel_LINKS core)
set(superoffload_io_LINKS core)
set(superoffload_text_LINKS io)
set(superoffload_data_LINKS text)
set(superoffload_cpu_LINKS kernel)
set(superoffload_comm_LINKS kernel)
set(superoffload_autograd_LINKS kernel)
set(superoffload_optim_LINKS kernel)
set(superoffload_zero_LINKS autograd comm)
set(superoffload_offload_LINKS zero optim cpu)
set(superoffload_nn_LINKS autograd)
set(superoffload_model_LINKS nn io)
set(superoffload_train_LINKS model data offload)
set(superoffload_compiled_LINKS train)
set(superoffload_cli_LINKS train)
set(superoffload_mpi_LINKS comm)
# Only superoffload-nvidia.cmake adds these.
set(superoffload_nvidia_COMPONENTS cudnn nccl)
set(superoffload_cudnn_LINKS cuda)
set(superoffload_nccl_LINKS cuda comm)

# Dependencies outside of this project.
set(superoffload_core_NEEDS Threads)
set(superoffload_io_NEEDS nlohmann_json)
set(superoffload_text_NEEDS Utf8proc)
set(superoffload_cpu_NEEDS Eigen3 Xsimd)
set(superoffload_cli_NEEDS CLI11)
set(superoffload_mpi_NEEDS MPI)
set(superoffload_cudnn_NEEDS CUDNN)
set(superoffload_nccl_NEEDS NCCL)

# package -> its target, and the Debian or Ubuntu package that has it
set(superoffload_package_Threads Threads::Threads libc6-dev)
set(superoffload_package_nlohmann_json nlohmann_json::nlohmann_json nlohmann-json3-dev)
set(superoffload_package_Utf8proc Utf8proc::utf8proc libutf8proc-dev)
set(superoffload_package_Eigen3 Eigen3::Eigen libeigen3-dev)  # no version: no range takes both 3.4.0 and 5
set(superoffload_package_Xsimd Xsimd::xsimd libxsimd-dev)
set(superoffload_package_CLI11 CLI11::CLI11 libcli11-dev)
set(superoffload_package_MPI MPI::MPI_CXX libopenmpi-dev)
set(MPI_CXX_SKIP_MPICXX TRUE)  # MPI's own C++ functions, which newer versions do not have
set(superoffload_package_CUDNN CUDNN::frontend nvidia-cudnn)
set(superoffload_package_NCCL NCCL::headers libnccl-dev)

if(NOT DEFINED superoffload_INCLUDE_DIR)
  get_filename_component(superoffload_INCLUDE_DIR ${CMAKE_CURRENT_LIST_DIR}/../include ABSOLUTE)
endif()
set(superoffload_CMAKE_DIR ${CMAKE_CURRENT_LIST_DIR})
include(${CMAKE_CURRENT_LIST_DIR}/superoffload-compiled.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/superoffload-cuda.cmake OPTIONAL)
include(${CMAKE_CURRENT_LIST_DIR}/superoffload-nvidia.cmake OPTIONAL)

# superoffload_add_components(components...): adds these and those that they link. Sets superoffload_<component>_FOUND in the
# caller's scope, and superoffload_<component>_REASON if that is false.
function(superoffload_add_components)
  set(wanted ${ARGN})
  set(in_reverse ${superoffload_COMPONENTS} ${superoffload_optional_COMPONENTS})
  list(REVERSE in_reverse)
  foreach(component IN LISTS in_reverse)
    if(component IN_LIST wanted)
      list(APPEND wanted ${superoffload_${component}_LINKS})
    endif()
  endforeach()
  foreach(component IN LISTS superoffload_COMPONENTS superoffload_optional_COMPONENTS)
    if(component IN_LIST wanted)
      _superoffload_add_component(${component})
      set(superoffload_${component}_FOUND ${superoffload_${component}_FOUND} PARENT_SCOPE)
      set(superoffload_${component}_REASON ${superoffload_${component}_REASON} PARENT_SCOPE)
    endif()
  endforeach()

  foreach(component IN LISTS superoffload_optional_COMPONENTS)
    set(library superoffload_compiled_${component})
    if(TARGET superoffload::${component} AND TARGET superoffload::compiled AND NOT TARGET ${library})
      superoffload_add_compiled_library(${library} ${component})
      target_link_libraries(${library} PUBLIC superoffload::compiled)
      add_library(superoffload::compiled_${component} INTERFACE IMPORTED GLOBAL)
      target_link_libraries(superoffload::compiled_${component} INTERFACE ${library})
      if(component STREQUAL "cli")
        target_link_libraries(${library} PRIVATE CLI11::CLI11)
      else()
        target_link_libraries(${library} PUBLIC superoffload::${component})
      endif()
    endif()
  endforeach()

  # The umbrella target needs all components, since its header includes all of them.
  if(NOT TARGET superoffload::superoffload)
    set(all)
    foreach(component IN LISTS superoffload_COMPONENTS)
      if(component STREQUAL "compiled")
        continue()
      elseif(NOT TARGET superoffload::${component})
        return()
      endif()
      list(APPEND all superoffload::${component})
    endforeach()
    add_library(superoffload::superoffload INTERFACE IMPORTED GLOBAL)
    target_link_libraries(superoffload::superoffload INTERFACE ${all})
  endif()
endfunction()

function(_superoffload_add_component name)
  set(superoffload_${name}_FOUND FALSE PARENT_SCOPE)

  foreach(component IN LISTS superoffload_${name}_LINKS)
    if(NOT superoffload_${component}_FOUND)
      set(superoffload_${name}_REASON "it needs ${component}: ${superoffload_${component}_REASON}" PARENT_SCOPE)
      return()
    endif()
  endforeach()

  # Packages are searched for in every call: every directory that uses our targets must see theirs.
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
  list(PREPEND CMAKE_MODULE_PATH ${superoffload_CMAKE_DIR})
  set(needs)
  foreach(package IN LISTS superoffload_${name}_NEEDS)
    list(GET superoffload_package_${package} 0 target)
    list(GET superoffload_package_${package} 1 debian_package)
    find_package(${package} QUIET)
    if(NOT TARGET ${target})
      set(reason
        "${package} was not found; install it (Debian, Ubuntu: apt install ${debian_package}) or add its prefix to CMAKE_PREFIX_PATH")
      if(${package}_REASON)
        set(reason "${${package}_REASON}")
      endif()
      set(superoffload_${name}_REASON "${reason}" PARENT_SCOPE)
      return()
    endif()
    list(APPEND needs ${target})
  endforeach()
  set(superoffload_${name}_FOUND TRUE PARENT_SCOPE)
  if(TARGET superoffload::${name})
    return()
  endif()

  list(TRANSFORM superoffload_${name}_LINKS PREPEND superoffload:: OUTPUT_VARIABLE links)
  set(library superoffload_${name})
  if(name STREQUAL "compiled")
    superoffload_add_compiled_library(${library} ${superoffload_COMPONENTS})
    target_link_libraries(${library} PUBLIC ${links})
  else()
    add_library(${library} INTERFACE)
    set(system SYSTEM)
    if(superoffload_OWN_BUILD)
      set(system)
    endif()
    target_include_directories(${library} ${system} INTERFACE ${superoffload_INCLUDE_DIR})
    target_compile_features(${library} INTERFACE cxx_std_20)
    target_link_libraries(${library} INTERFACE ${links} ${needs})
  endif()
  if(name STREQUAL "mpi")
    target_compile_definitions(${library} INTERFACE SUPEROFFLOAD_HAS_MPI)
  elseif(name STREQUAL "cpu")
    # AdamW gives the same bits on every processor, but not if a product and a sum are fused and rounded once.
    target_compile_options(${library} INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>:-ffp-contract=off>)
  endif()
  # Imported, so that a consumer can export its own library that links it.
  add_library(superoffload::${name} INTERFACE IMPORTED GLOBAL)
  target_link_libraries(superoffload::${name} INTERFACE ${library})
endfunction()
