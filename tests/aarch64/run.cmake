# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# cmake -D SOURCE=... -D BUILD=... -D LAUNCHER=... -D GENERATOR=... -P run.cmake

find_program(compiler aarch64-linux-gnu-g++)
find_program(emulator NAMES qemu-aarch64 qemu-aarch64-static)
foreach(needed IN ITEMS "compiler:g++-aarch64-linux-gnu" "emulator:qemu-user")
  string(REPLACE ":" ";" needed ${needed})
  list(GET needed 0 tool)
  list(GET needed 1 package)
  if(NOT ${tool})
    message("aarch64 is not tested: no ${tool}; install ${package}")
    return()
  endif()
endforeach()

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message("${output}")  # apart: a fatal message would be wrapped
    message(FATAL_ERROR "aarch64: '${command}' ended with ${result}")
  endif()
endfunction()

run(${CMAKE_COMMAND} -S ${SOURCE}/tests/aarch64/project -B ${BUILD} -G ${GENERATOR}
  -D CMAKE_SYSTEM_NAME=Linux -D CMAKE_SYSTEM_PROCESSOR=aarch64 -D CMAKE_CXX_COMPILER=${compiler}
  -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -D SUPEROFFLOAD_SOURCE=${SOURCE})
run(${CMAKE_COMMAND} --build ${BUILD} --parallel 2)
run(${emulator} -L /usr/aarch64-linux-gnu ${BUILD}/bin/kernel_tests)
