# The targets superoffload::<component>. Used by this project's CMakeLists.txt and by the installed package
# configuration alike, so that a consumer gets the same targets from a build tree, an install tree or a subdirectory.
# Each component is a directory of headers; where it has sources (*.cpp beside its headers), they become one static
# library compiled once in the consuming build.

include(CMakeFindDependencyMacro)

if(NOT DEFINED superoffload_INCLUDE_DIR)
  get_filename_component(superoffload_INCLUDE_DIR ${CMAKE_CURRENT_LIST_DIR}/../include ABSOLUTE)
endif()

# superoffload_component(NAME [LINKS targets...] [PRIVATE_LINKS targets...])
function(superoffload_component name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINKS;PRIVATE_LINKS")
  if(TARGET superoffload::${name})
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${superoffload_INCLUDE_DIR}/superoffload/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/kernels_[a-z0-9_]+\\.cpp$")
  if(sources)
    add_library(superoffload_${name} STATIC EXCLUDE_FROM_ALL ${sources})
    set_target_properties(superoffload_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_link_libraries(superoffload_${name} PRIVATE ${arg_PRIVATE_LINKS})
    set(scope PUBLIC)
  else()
    add_library(superoffload_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(superoffload_${name} ${scope} ${superoffload_INCLUDE_DIR})
  target_compile_features(superoffload_${name} ${scope} cxx_std_20)
  target_link_libraries(superoffload_${name} ${scope} ${arg_LINKS})
  add_library(superoffload::${name} ALIAS superoffload_${name})
endfunction()

# What the sources link, as build-only targets.
find_dependency(Threads)
find_dependency(nlohmann_json)
find_dependency(PkgConfig)
if(NOT TARGET PkgConfig::superoffload_pcre2)
  pkg_check_modules(superoffload_pcre2 REQUIRED QUIET IMPORTED_TARGET GLOBAL libpcre2-8)
  pkg_check_modules(superoffload_utf8proc REQUIRED QUIET IMPORTED_TARGET GLOBAL libutf8proc)
endif()

superoffload_component(core)
superoffload_component(kernel LINKS superoffload::core)
superoffload_component(io LINKS superoffload::core PRIVATE_LINKS nlohmann_json::nlohmann_json)
superoffload_component(text LINKS superoffload::io
  PRIVATE_LINKS nlohmann_json::nlohmann_json PkgConfig::superoffload_pcre2 PkgConfig::superoffload_utf8proc)
superoffload_component(data LINKS superoffload::text PRIVATE_LINKS nlohmann_json::nlohmann_json)
include(${CMAKE_CURRENT_LIST_DIR}/superoffload-cpu.cmake OPTIONAL)
superoffload_component(autograd LINKS superoffload::kernel)
superoffload_component(optim LINKS superoffload::kernel)
superoffload_component(zero LINKS superoffload::autograd)
superoffload_component(nn LINKS superoffload::autograd)
superoffload_component(model LINKS superoffload::nn superoffload::io PRIVATE_LINKS nlohmann_json::nlohmann_json)
superoffload_component(train
  LINKS superoffload::model superoffload::data superoffload::optim superoffload::zero superoffload::io
  PRIVATE_LINKS nlohmann_json::nlohmann_json)
