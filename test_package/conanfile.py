# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class Test(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if not can_run(self):
            return
        programs = {"trainer": [self.source_folder], "cuda": [""], "cudnn": [""], "mpi": [""], "nccl": [""],
                    "cli": ["--help", f"--model {self.source_folder} --max_length 128 --device cpu --dry_run"]}
        for name, calls in programs.items():
            program = os.path.join(self.cpp.build.bindir, name)
            if os.path.exists(program):
                for arguments in calls:
                    self.run(f"{program} {arguments}", env="conanrun")
