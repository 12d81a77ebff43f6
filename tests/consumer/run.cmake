# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# cmake -D WAY=build_tree|install_tree|moved_tree|subdirectory ... -P run.cmake
# Every way puts the package at ROOT/WAY/superoffload and the consumer at ROOT/WAY/build, so that ccache, which is set to
# relative paths, compiles once for all. For subdirectory and moved_tree the library is compiled and the programs run; the
# other two find the package elsewhere, and compile one source with it.

set(home ${ROOT}/${WAY})
set(tree ${home}/superoffload)
file(REMOVE_RECURSE ${home})
file(MAKE_DIRECTORY ${home}/build)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output
    WORKING_DIRECTORY ${home}/build)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message("${output}")  # apart: a fatal message would be wrapped
    message(FATAL_ERROR "${WAY}: '${command}' ended with ${result}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(toolchain -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
set(consumer_options)

if(WAY STREQUAL "subdirectory" OR WAY STREQUAL "build_tree")
  file(COPY ${SOURCE}/CMakeLists.txt ${SOURCE}/cmake ${SOURCE}/include DESTINATION ${tree})
endif()
if(WAY STREQUAL "subdirectory")
  set(consumer_options -D SUPEROFFLOAD_SOURCE=${tree})
elseif(WAY STREQUAL "build_tree")
  run(${CMAKE_COMMAND} -S ${tree} -B ${tree}/build ${toolchain} -D SUPEROFFLOAD_BUILD_EXAMPLES=OFF)
  set(consumer_options -D superoffload_DIR=${tree}/build)
elseif(WAY STREQUAL "install_tree")
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${tree} --component superoffload_development)
  set(consumer_options -D CMAKE_PREFIX_PATH=${tree})
elseif(WAY STREQUAL "moved_tree")
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${home}/first --component superoffload_development)
  file(RENAME ${home}/first ${tree})
  set(consumer_options -D CMAKE_PREFIX_PATH=${tree})
else()
  message(FATAL_ERROR "WAY is '${WAY}'")
endif()

set(finds_only FALSE)
if(WAY MATCHES "^(build|install)_tree$")
  set(finds_only TRUE)
  list(APPEND consumer_options -D CMAKE_OPTIMIZE_DEPENDENCIES=ON)  # a static library does not wait for those that it links
endif()

set(ENV{CCACHE_BASEDIR} /)
set(ENV{CCACHE_NOHASHDIR} 1)
# The project is copied, too: its own files are then at the same relative path.
file(COPY ${SOURCE}/tests/consumer/project DESTINATION ${home})
run(${CMAKE_COMMAND} -S ${home}/project -B ${home}/build ${toolchain} ${consumer_options})
# Checks that the package found is this test's, not one of the machine.
if(NOT WAY STREQUAL "subdirectory")
  file(STRINGS ${home}/build/CMakeCache.txt found REGEX "^superoffload_DIR:")
  string(FIND "${found}" "=${tree}/" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${WAY}: found another package: ${found}")
  endif()
endif()
if(finds_only)
  run(${CMAKE_COMMAND} --build ${home}/build --target library)
  return()
endif()
run(${CMAKE_COMMAND} --build ${home}/build --parallel 2)

set(model ${SOURCE}/tests/data/models/llama)
set(data ${SOURCE}/examples/data/alpaca_en_demo.json)
# The same checkpoint with a model_type that only the consumer knows.
file(READ ${model}/config.json config)
string(REPLACE "LlamaForCausalLM" "ParallelForCausalLM" config "${config}")
string(REPLACE "\"model_type\": \"llama\"" "\"model_type\": \"parallel\", \"parallel_residual\": true" config "${config}")
file(WRITE ${home}/own_model/config.json "${config}")
file(COPY ${model}/tokenizer.json ${model}/tokenizer_config.json DESTINATION ${home}/own_model)
run(${home}/build/behind_library ${model} ${data} ${home}/own_model)
message("${output}")
run(${home}/build/of_two_libraries ${model})
set(losses)
cmake_host_system_information(RESULT processor QUERY OS_PLATFORM)
if(processor MATCHES "^(x86_64|AMD64|amd64)$")
  # The instruction set of the header-only program, whose flags name no other. GEMMs of other sets round differently.
  set(ENV{SUPEROFFLOAD_ISA} scalar)
endif()
foreach(trainer trainer compiled_trainer)
  run(${home}/build/${trainer} ${model} ${data} ${home}/trained_by_${trainer})
  message("${output}")
  if(NOT EXISTS ${home}/trained_by_${trainer}/model.safetensors)
    message(FATAL_ERROR "${WAY}: ${trainer} left no ${home}/trained_by_${trainer}/model.safetensors")
  endif()
  # Without the plan, whose times are measured.
  string(REGEX MATCHALL "step [0-9]+ loss [^\n]*" steps "${output}")
  list(LENGTH steps number)
  if(NOT number EQUAL 10 OR NOT output MATCHES "plan for llama")
    message(FATAL_ERROR "${WAY}: ${trainer} printed ${number} steps, expected a plan and 10 of them")
  endif()
  list(JOIN steps ", " steps)
  list(APPEND losses "${steps}")
endforeach()
list(REMOVE_DUPLICATES losses)
list(LENGTH losses different)
if(NOT different EQUAL 1)
  message(FATAL_ERROR "${WAY}: the header-only trainer and the compiled one differ")
endif()
