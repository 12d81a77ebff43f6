# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# cmake -D COMPILER=... -D SOURCE=... -D INCLUDE=... -P check.cmake
# Passes when SOURCE does not compile and an error matches the line `// error: <regex>` in it.

file(STRINGS ${SOURCE} line REGEX "^// error: " LIMIT_COUNT 1)
string(REGEX REPLACE "^// error: " "" expected "${line}")
if(expected STREQUAL "")
  message(FATAL_ERROR "${SOURCE}: expected a line '// error: <regex>'")
endif()

# Colours off and one locale: the message is matched as text.
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C ${COMPILER} -std=c++20 -fsyntax-only -fdiagnostics-color=never -DSUPEROFFLOAD_COMPILED -I${INCLUDE} ${SOURCE}
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(result EQUAL 0)
  message(FATAL_ERROR "${SOURCE}: compiles; expected an error matching '${expected}'")
endif()
if(NOT output MATCHES "error: [^\n]*(${expected})")
  message(FATAL_ERROR "${SOURCE}: no error matches '${expected}'; the compiler said:\n${output}")
endif()
