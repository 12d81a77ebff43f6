# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# Packages of the programs, which `cpack` makes in the build tree: an archive, and where Debian's tools are a .deb, named
# superoffload-cuda where the programs have CUDA.

set(CPACK_PACKAGE_NAME superoffload)
set(CPACK_PACKAGE_VENDOR "The superoffload authors")
set(CPACK_PACKAGE_CONTACT "The superoffload authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "fine-tunes language models whose training state does not fit the GPU")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};superoffload;superoffload_programs;/")
set(CPACK_STRIP_FILES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian.cmake)

if(superoffload_cuda_FOUND)
  set(CPACK_PACKAGE_NAME superoffload-cuda)
  set(CPACK_DEBIAN_PACKAGE_CONFLICTS superoffload)
  set(CPACK_DEBIAN_PACKAGE_REPLACES superoffload)
  set(CPACK_DEBIAN_PACKAGE_PROVIDES superoffload)
  # dpkg-shlibdeps knows the packages of libraries that came in one. Else these are NVIDIA's names.
  get_filename_component(library ${CUDA_cudart_LIBRARY} REALPATH)
  execute_process(COMMAND dpkg-query --search ${library} RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  if(NOT result EQUAL 0)
    set(release ${CUDAToolkit_VERSION_MAJOR}-${CUDAToolkit_VERSION_MINOR})
    set(CPACK_DEBIAN_PACKAGE_DEPENDS "cuda-cudart-${release}, libcublas-${release}")
  endif()
  if(superoffload_nccl_FOUND)
    set(CPACK_DEBIAN_PACKAGE_RECOMMENDS libnccl2)  # which is loaded at run time
  endif()
endif()

set(CPACK_GENERATOR TGZ)
find_program(SUPEROFFLOAD_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(SUPEROFFLOAD_SHLIBDEPS)
if(SUPEROFFLOAD_SHLIBDEPS)
  list(APPEND CPACK_GENERATOR DEB)
endif()
set(CPACK_PACKAGE_FILE_NAME ${CPACK_PACKAGE_NAME}-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
include(CPack)
