# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# The package's messages about missing components, in configurations that compile nothing; and what is installed then.

set(home ${ROOT}/messages)
file(REMOVE_RECURSE ${home})

# expect_output(NAME EXPECTED_RESULT regex COMMAND...)
function(expect_output name succeeds regex)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(succeeds AND NOT result EQUAL 0 OR NOT succeeds AND result EQUAL 0 OR NOT output MATCHES "${regex}")
    message(FATAL_ERROR "${name}: result ${result}, expected '${regex}' in:\n${output}")
  endif()
endfunction()

# expect_message(NAME EXPECTED_RESULT regex CMAKE_CODE [options...])
function(expect_message name succeeds regex code)
  file(WRITE ${home}/${name}/CMakeLists.txt
    "cmake_minimum_required(VERSION 3.25)\nproject(consumer LANGUAGES CXX)\n${code}\n")
  expect_output(${name} ${succeeds} "${regex}" ${CMAKE_COMMAND} -S ${home}/${name} -B ${home}/${name}/build
    -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER} -D superoffload_DIR=${BUILD} ${ARGN})
endfunction()

expect_message(unknown_component OFF "superoffload::cud is not available: there is no such component, only core, "
  "find_package(superoffload CONFIG REQUIRED COMPONENTS cud)")
expect_message(missing_dependency OFF "superoffload::data is not available: it needs text: Utf8proc was not found; install it [(]Debian, Ubuntu: apt install libutf8proc-dev[)]"
  "find_package(superoffload CONFIG REQUIRED COMPONENTS io data)" -D CMAKE_DISABLE_FIND_PACKAGE_Utf8proc=ON)
# Only the requested components must exist, and no other dependency is searched for.
expect_message(unrelated_dependency ON "io=TRUE text="
  "find_package(superoffload CONFIG REQUIRED COMPONENTS io)
   message(STATUS \"io=\${superoffload_io_FOUND} text=\${superoffload_text_FOUND}\")"
  -D CMAKE_DISABLE_FIND_PACKAGE_Utf8proc=ON -D CMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON)
expect_message(optional_component ON "found=1 text=FALSE"
  "find_package(superoffload CONFIG REQUIRED COMPONENTS io OPTIONAL_COMPONENTS text)
   message(STATUS \"found=\${superoffload_FOUND} text=\${superoffload_text_FOUND}\")"
  -D CMAKE_DISABLE_FIND_PACKAGE_Utf8proc=ON)
# A program's command line is there on request, and what nobody asked for needs no CLI11.
expect_message(command_line OFF "superoffload::cli is not available: CLI11 was not found; install it [(]Debian, Ubuntu: apt install libcli11-dev[)]"
  "find_package(superoffload CONFIG REQUIRED COMPONENTS cli)" -D CMAKE_DISABLE_FIND_PACKAGE_CLI11=ON)
expect_message(no_command_line ON "umbrella=superoffload::superoffload" "find_package(superoffload CONFIG REQUIRED)
  get_target_property(name superoffload::superoffload NAME)\nmessage(STATUS \"umbrella=\${name}\")"
  -D CMAKE_DISABLE_FIND_PACKAGE_CLI11=ON)
expect_message(another_minor_version OFF "superoffload-config.cmake, version: "
  "find_package(superoffload 0.0.9 CONFIG REQUIRED)")
# Found twice, in sibling directories, and used in a third.
file(WRITE ${home}/siblings/a/CMakeLists.txt "find_package(superoffload CONFIG REQUIRED COMPONENTS io)\n")
file(WRITE ${home}/siblings/b/CMakeLists.txt "find_package(superoffload CONFIG REQUIRED COMPONENTS text)
  add_library(b STATIC ${CMAKE_CURRENT_LIST_DIR}/project/behind_library.cpp)\ntarget_link_libraries(b PUBLIC superoffload::text)\n")
file(WRITE ${home}/siblings/c/CMakeLists.txt
  "add_executable(c ${CMAKE_CURRENT_LIST_DIR}/project/behind_library.cpp)\ntarget_link_libraries(c PRIVATE b superoffload::io)\n")
expect_message(siblings ON "Generating done" "add_subdirectory(a)\nadd_subdirectory(b)\nadd_subdirectory(c)")
# Components that need a CUDA toolkit.
foreach(component cudnn nccl)
  expect_message(${component}_without_cuda OFF
    "superoffload::${component} is not available: it needs cuda: no CUDA toolkit 12 or newer"
    "find_package(superoffload CONFIG REQUIRED COMPONENTS ${component})" -D CMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON)
endforeach()
# A build tree in which nothing is built installs the library, and says why there are no programs.
set(unbuilt ${home}/unbuilt)
expect_output(unbuilt ON "Generating done" ${CMAKE_COMMAND} -S ${SOURCE} -B ${unbuilt} -G ${GENERATOR}
  -D CMAKE_CXX_COMPILER=${COMPILER} -D SUPEROFFLOAD_CUDA=OFF)
expect_output(library ON "Installing the library without the programs: [^ ]*/finetune_llama is not built"
  ${CMAKE_COMMAND} --install ${unbuilt} --prefix ${home}/library)
foreach(file include/superoffload/superoffload.hpp share/cmake/superoffload/superoffload-config.cmake
    share/pkgconfig/superoffload.pc)
  if(NOT EXISTS ${home}/library/${file})
    message(FATAL_ERROR "library: ${file} was not installed")
  endif()
endforeach()
if(EXISTS ${home}/library/bin)
  message(FATAL_ERROR "library: there are no programs, but there is bin")
endif()
expect_output(programs OFF "/finetune_llama is not built; build the programs first"
  ${CMAKE_COMMAND} --install ${unbuilt} --prefix ${home}/programs --component superoffload_programs)
