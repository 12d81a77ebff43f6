# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# Xsimd::xsimd, Xsimd_VERSION. Not the library's own configuration: in Debian, it names a target that links a library "xtl".

find_path(Xsimd_INCLUDE_DIR xsimd/xsimd.hpp)
mark_as_advanced(Xsimd_INCLUDE_DIR)
if(Xsimd_INCLUDE_DIR)
  file(STRINGS ${Xsimd_INCLUDE_DIR}/xsimd/config/xsimd_config.hpp lines REGEX "define XSIMD_VERSION_[A-Z]+ +[0-9]+")
  string(REGEX REPLACE "[^0-9]+" "." Xsimd_VERSION "${lines}")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" Xsimd_VERSION "${Xsimd_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Xsimd REQUIRED_VARS Xsimd_INCLUDE_DIR VERSION_VAR Xsimd_VERSION)
if(Xsimd_FOUND AND NOT TARGET Xsimd::xsimd)
  add_library(Xsimd::xsimd INTERFACE IMPORTED GLOBAL)
  target_include_directories(Xsimd::xsimd INTERFACE ${Xsimd_INCLUDE_DIR})
endif()
