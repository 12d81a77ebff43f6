# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# An overlay port: it packs the tree that it is in.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../.." ABSOLUTE)

# The feature cli has no option: its headers are always there, and their component wherever CLI11 is.
vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
    FEATURES
        cuda  SUPEROFFLOAD_CUDA
        cudnn SUPEROFFLOAD_CUDNN
        mpi   SUPEROFFLOAD_MPI
        nccl  SUPEROFFLOAD_NCCL
        tools SUPEROFFLOAD_BUILD_EXAMPLES
)
if("cuda" IN_LIST FEATURES)
    vcpkg_find_cuda(OUT_CUDA_TOOLKIT_ROOT cuda_toolkit_root)
    list(APPEND FEATURE_OPTIONS
        "-DCMAKE_CUDA_COMPILER=${NVCC}"
        "-DCUDAToolkit_ROOT=${cuda_toolkit_root}"
    )
endif()

set(VCPKG_BUILD_TYPE release) # header-only, and programs

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        ${FEATURE_OPTIONS}
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/superoffload)
vcpkg_fixup_pkgconfig()

if("tools" IN_LIST FEATURES)
    file(GLOB tools RELATIVE "${CURRENT_PACKAGES_DIR}/bin" "${CURRENT_PACKAGES_DIR}/bin/*")
    vcpkg_copy_tools(TOOL_NAMES ${tools} AUTO_CLEAN)
    file(REMOVE_RECURSE
        "${CURRENT_PACKAGES_DIR}/share/bash-completion"
        "${CURRENT_PACKAGES_DIR}/share/doc"
        "${CURRENT_PACKAGES_DIR}/share/fish"
        "${CURRENT_PACKAGES_DIR}/share/man"
        "${CURRENT_PACKAGES_DIR}/share/zsh"
    )
endif()

file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
