# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# cmake -D CURRENT_PORT_DIR=... -D CURRENT_PACKAGES_DIR=... -D CURRENT_BUILDTREES_DIR=... -D PORT=... -D FEATURES=...
#   -P vcpkg_port.cmake
# Runs a portfile without vcpkg: its functions do here, with CMake and this machine's packages, what the port relies on, and
# refuse what vcpkg refuses.

cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message("${output}")
    message(FATAL_ERROR "'${command}' ended with ${result}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(vcpkg_check_features)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_FEATURE_OPTIONS" "FEATURES")
  set(options)
  while(arg_FEATURES)
    list(POP_FRONT arg_FEATURES feature variable)
    set(value OFF)
    if(feature IN_LIST FEATURES)
      set(value ON)
    endif()
    list(APPEND options -D${variable}=${value})
  endwhile()
  set(${arg_OUT_FEATURE_OPTIONS} ${options} PARENT_SCOPE)
endfunction()

function(vcpkg_find_cuda)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_CUDA_TOOLKIT_ROOT" "")
  find_program(NVCC nvcc HINTS /usr/local/cuda/bin REQUIRED)
  get_filename_component(root ${NVCC}/../.. REALPATH)
  set(${arg_OUT_CUDA_TOOLKIT_ROOT} ${root} PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  if(NOT VCPKG_BUILD_TYPE STREQUAL "release")
    message(FATAL_ERROR "VCPKG_BUILD_TYPE is '${VCPKG_BUILD_TYPE}', expected release")
  endif()
  run(${CMAKE_COMMAND} -S ${arg_SOURCE_PATH} -B ${CURRENT_BUILDTREES_DIR} -G Ninja -D CMAKE_BUILD_TYPE=Release
    -D CMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR} -D CMAKE_INSTALL_LIBDIR=lib -D BUILD_SHARED_LIBS=OFF ${arg_OPTIONS})
  # BUILD_SHARED_LIBS and what else vcpkg always gives need not be used.
  string(REGEX MATCH "not used by the project:(\n|    [A-Za-z_]+)*" unused "${output}")
  if(unused MATCHES "SUPEROFFLOAD_|CUDA")
    message(FATAL_ERROR "the port gives options that CMakeLists.txt does not know: ${unused}")
  endif()
endfunction()

function(vcpkg_cmake_install)
  run(${CMAKE_COMMAND} --build ${CURRENT_BUILDTREES_DIR} --target install)
endfunction()

function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "CONFIG_PATH" "")
  file(RENAME ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH} ${CURRENT_PACKAGES_DIR}/share/${PORT})
  get_filename_component(parent ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH} DIRECTORY)
  file(REMOVE_RECURSE ${parent})
  # A package's directory is then one level up.
  set(config ${CURRENT_PACKAGES_DIR}/share/${PORT}/${PORT}-config.cmake)
  file(READ ${config} text)
  string(REPLACE "\${CMAKE_CURRENT_LIST_DIR}/../../../" "\${CMAKE_CURRENT_LIST_DIR}/../../" moved "${text}")
  if(moved STREQUAL text)
    message(FATAL_ERROR "${config} does not find its prefix in the way that vcpkg knows")
  endif()
  file(WRITE ${config} "${moved}")
endfunction()

function(vcpkg_fixup_pkgconfig)
  file(GLOB files ${CURRENT_PACKAGES_DIR}/*/pkgconfig/*.pc)
  foreach(file IN LISTS files)
    file(STRINGS ${file} prefix REGEX "^prefix=")
    if(NOT prefix STREQUAL "prefix=\${pcfiledir}/../..")
      message(FATAL_ERROR "${file} has ${prefix}, which is not relative")
    endif()
  endforeach()
endfunction()

function(vcpkg_copy_tools)
  cmake_parse_arguments(PARSE_ARGV 0 arg "AUTO_CLEAN" "" "TOOL_NAMES")
  file(MAKE_DIRECTORY ${CURRENT_PACKAGES_DIR}/tools/${PORT})
  foreach(tool IN LISTS arg_TOOL_NAMES)
    file(RENAME ${CURRENT_PACKAGES_DIR}/bin/${tool} ${CURRENT_PACKAGES_DIR}/tools/${PORT}/${tool})
  endforeach()
  file(GLOB left ${CURRENT_PACKAGES_DIR}/bin/*)
  if(arg_AUTO_CLEAN AND NOT left)
    file(REMOVE_RECURSE ${CURRENT_PACKAGES_DIR}/bin)
  endif()
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  configure_file(${arg_FILE_LIST} ${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright COPYONLY)
endfunction()

include(${CURRENT_PORT_DIR}/portfile.cmake)
