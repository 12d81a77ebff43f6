# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# What sources have in common is compiled once for up to twenty of them: less than half the time for all, but more for one.

# superoffload_batch(TARGET SOURCES...): compiles these sources of the target in batches. In each, all their headers come first,
# and every source is in a namespace of its own, so that sources may use the same names.
function(superoffload_batch target)
  list(LENGTH ARGN sources)
  math(EXPR batches "(${sources} + 19) / 20")
  set(includes)
  set(number 0)
  # A source that includes another header needs a new batch.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  foreach(source IN LISTS ARGN)
    file(STRINGS ${source} own REGEX "^#include")
    list(APPEND includes ${own})
    math(EXPR batch "${number} * ${batches} / ${sources}")
    math(EXPR number "${number} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${batch})
  endforeach()
  list(REMOVE_DUPLICATES includes)
  list(JOIN includes "\n" includes)
  set(header ${CMAKE_CURRENT_BINARY_DIR}/${target}.hpp)
  file(CONFIGURE OUTPUT ${header} CONTENT "#pragma once\n${includes}\n" @ONLY)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})  # the sources name headers beside them
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP
    UNITY_BUILD_UNIQUE_ID SUPEROFFLOAD_TEST_SOURCE
    UNITY_BUILD_CODE_BEFORE_INCLUDE "#include \"${header}\"\nnamespace SUPEROFFLOAD_TEST_SOURCE {"
    UNITY_BUILD_CODE_AFTER_INCLUDE "}")
endfunction()
