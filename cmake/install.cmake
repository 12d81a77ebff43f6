# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# Installs headers and CMake files, nothing compiled, so that the package works for every compiler and processor. The
# library that this build has compiled is a component of its own, installed on request, for builds without CMake.

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/superoffload)

install(DIRECTORY include/superoffload DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT superoffload_development
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
install(FILES
  cmake/superoffload-targets.cmake cmake/superoffload-compiled.cmake cmake/superoffload-cuda.cmake
  cmake/superoffload-cuda-standard.cmake cmake/superoffload-nvidia.cmake cmake/FindCUDNN.cmake cmake/FindNCCL.cmake
  cmake/FindUtf8proc.cmake cmake/FindXsimd.cmake
  DESTINATION ${package_dir} COMPONENT superoffload_development)

# The same configuration twice: for the install tree, and in the build tree for consumers of the source tree.
set(superoffload_config_include ${CMAKE_INSTALL_INCLUDEDIR})
set(superoffload_config_cmake "\${CMAKE_CURRENT_LIST_DIR}")  # vcpkg moves it
configure_package_config_file(cmake/superoffload-config.cmake.in
  ${PROJECT_BINARY_DIR}/install/superoffload-config.cmake INSTALL_DESTINATION ${package_dir}
  PATH_VARS superoffload_config_include
  NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)

set(superoffload_config_include ${PROJECT_SOURCE_DIR}/include)
set(superoffload_config_cmake ${PROJECT_SOURCE_DIR}/cmake)
configure_package_config_file(cmake/superoffload-config.cmake.in
  ${PROJECT_BINARY_DIR}/superoffload-config.cmake INSTALL_DESTINATION ${PROJECT_BINARY_DIR}
  PATH_VARS superoffload_config_include
  NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)

write_basic_package_version_file(${PROJECT_BINARY_DIR}/superoffload-config-version.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/install/superoffload-config.cmake
  ${PROJECT_BINARY_DIR}/superoffload-config-version.cmake
  DESTINATION ${package_dir} COMPONENT superoffload_development)

# superoffload_install_pc(NAME DIRECTORY OPTIONS...): NAME.pc, whose paths are relative to itself.
function(superoffload_install_pc name directory)
  file(RELATIVE_PATH up /prefix/${directory} /prefix)
  string(REGEX REPLACE "/$" "" up ${up})
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/install/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/install/${name}.pc DESTINATION ${directory} ${ARGN})
endfunction()
superoffload_install_pc(superoffload ${CMAKE_INSTALL_DATADIR}/pkgconfig COMPONENT superoffload_development)
superoffload_install_pc(superoffload-compiled ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT superoffload_compiled EXCLUDE_FROM_ALL)

if(TARGET superoffload_compiled)
  install(FILES $<TARGET_FILE:superoffload_compiled> DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT superoffload_compiled EXCLUDE_FROM_ALL)
endif()
