# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""The system's CLI11 as a package of Conan, with the names that Conan Center's has: beside it, the other dependencies of
superoffload are platform_requires."""

from conan import ConanFile
from conan.tools.files import copy


class CLI11(ConanFile):
    name = "cli11"
    version = "2.1.2"
    package_type = "header-library"

    def package(self):
        copy(self, "CLI/*", "/usr/include", f"{self.package_folder}/include")

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "CLI11")
        self.cpp_info.set_property("cmake_target_name", "CLI11::CLI11")
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
