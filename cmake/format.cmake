# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# Targets `format` (rewrites) and `format-check` (fails and prints the lines). Other versions format differently.
find_program(SUPEROFFLOAD_CLANG_FORMAT clang-format-19)
mark_as_advanced(SUPEROFFLOAD_CLANG_FORMAT)
if(NOT SUPEROFFLOAD_CLANG_FORMAT)
  return()
endif()
foreach(directory include tests bench examples)
  list(APPEND patterns ${directory}/*.hpp ${directory}/*.cpp)
endforeach()
file(GLOB_RECURSE formatted CONFIGURE_DEPENDS ${patterns})
add_custom_target(format COMMAND ${SUPEROFFLOAD_CLANG_FORMAT} -i ${formatted} VERBATIM)
add_custom_target(format-check COMMAND ${SUPEROFFLOAD_CLANG_FORMAT} --dry-run --Werror ${formatted} VERBATIM)
