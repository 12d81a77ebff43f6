# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# The component COMPONENT, cudnn or nccl, of an install tree, in a project that has no language but C++: its library and
# a source that uses it are compiled. Linking a program would compile the kernels, too, which tests/<component> does.
# DEFINITIONS say where what the component needs is.

set(home ${ROOT}/${COMPONENT})
file(REMOVE_RECURSE ${home})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message("${output}")  # apart: a fatal message would be wrapped
    message(FATAL_ERROR "'${command}' ended with ${result}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${home}/superoffload --component superoffload_development)
file(WRITE ${home}/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
find_package(superoffload 0.1 CONFIG REQUIRED COMPONENTS ${COMPONENT})
add_library(uses OBJECT uses.cpp)
target_link_libraries(uses PRIVATE superoffload::${COMPONENT})
add_custom_target(compiled)
add_dependencies(compiled superoffload_${COMPONENT} uses)
")
set(cudnn "#include <superoffload/cudnn/choose.hpp>
#ifndef SUPEROFFLOAD_HAS_CUDNN
#error \"the component does not say that it is there\"
#endif
std::string attend(superoffload::cuda::device& device) {
  return superoffload::cudnn::choose_attention(device, superoffload::kernel::attention_implementation::automatic,
    {.starts = nullptr, .documents = 1, .rows = 1, .heads = 8, .kv_heads = 8, .head_dim = 64, .longest = 1, .scale = 1},
    false, true);
}
")
set(nccl "#include <superoffload/nccl/communicator.hpp>
#ifndef SUPEROFFLOAD_HAS_NCCL
#error \"the component does not say that it is there\"
#endif
int ranks(superoffload::comm::shared_segment& shared, superoffload::cuda::device& device) {
  return superoffload::nccl::communicator{shared, 0, device}.ranks();
}
")
file(WRITE ${home}/uses.cpp "${${COMPONENT}}")
run(${CMAKE_COMMAND} -S ${home} -B ${home}/build -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER}
  -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -D CMAKE_OPTIMIZE_DEPENDENCIES=ON
  -D CMAKE_PREFIX_PATH=${home}/superoffload ${DEFINITIONS})
run(${CMAKE_COMMAND} --build ${home}/build --target compiled)
