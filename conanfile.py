# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""superoffload for Conan 2, with the components of the CMake package. Header-only; with the option `compiled`, or with
device code (`cuda`), a static library. `cli` is the command line of a fine-tuner; with `mpi` its ranks may be on several
hosts. `cudnn` and `nccl` need `cuda`. The CUDA toolkit, cuDNN, NCCL and MPI are the machine's."""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

required_conan_version = ">=2.30"  # cmake_extra_dependencies

# What our CMake files find -> Conan's name.
PACKAGES = {"nlohmann_json": "nlohmann_json", "Utf8proc": "utf8proc", "Eigen3": "eigen", "Xsimd": "xsimd", "CLI11": "cli11"}


class Superoffload(ConanFile):
    name = "superoffload"
    description = "Fine-tuning of language models whose training state does not fit the GPU"
    license = "Apache-2.0"
    topics = ("deep-learning", "llm", "fine-tuning", "offloading", "cuda")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {name: [True, False] for name in ("cli", "compiled", "cuda", "cudnn", "mpi", "nccl")}
    default_options = {name: False for name in options}
    exports = "cmake/superoffload-targets.cmake"
    exports_sources = "CMakeLists.txt", "LICENSE", "cmake/*", "include/*"
    no_copy_source = True

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "include/superoffload/core/version.hpp"))
        self.version = ".".join(re.findall(r"#define SUPEROFFLOAD_VERSION_[A-Z]+ (\d+)", header))

    def configure(self):
        if self.options.compiled or self.options.cuda:
            self.package_type = "static-library"

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration(f"os is {self.settings.os}, expected Linux")
        for option in "cudnn", "nccl":
            if self.options.get_safe(option) and not self.options.cuda:
                raise ConanInvalidConfiguration(f"{option} is True, but cuda is False; expected cuda=True")

    def requirements(self):
        references = ["nlohmann_json/[>=3.10 <4]", "utf8proc/[>=2.8 <3]", "eigen/[>=3.4 <6]", "xsimd/[>=8.1 <15]"]
        if self.options.cli:
            references.append("cli11/[>=2.1 <3]")
        for reference in references:
            self.requires(reference, transitive_headers=True, transitive_libs=True)

    def package_id(self):
        if self.package_type == "header-library":
            self.info.clear()

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.blocks.remove("cppstd")  # the targets say it themselves; CMake 3.25 would try nvcc with it, too
        toolchain.cache_variables["SUPEROFFLOAD_BUILD_EXAMPLES"] = False
        toolchain.cache_variables["SUPEROFFLOAD_CUDA"] = bool(self.options.cuda)
        for option in "cudnn", "mpi", "nccl":
            toolchain.cache_variables[f"SUPEROFFLOAD_{option.upper()}"] = bool(self.options.get_safe(option))
        toolchain.generate()

    def _libraries(self):
        """What is compiled, by component."""
        libraries = {}
        if self.options.compiled:
            libraries["compiled"] = "superoffload_compiled"
            if self.options.cli:
                libraries["compiled_cli"] = "superoffload_compiled_cli"
            if self.options.mpi:
                libraries["compiled_mpi"] = "superoffload_compiled_mpi"
        for option in "cuda", "nccl":
            if self.options.get_safe(option):
                if self.options.compiled:
                    libraries[f"compiled_{option}"] = f"superoffload_compiled_{option}"
                else:
                    libraries[option] = f"superoffload_{option}_device_code"
        if self.options.cudnn:
            libraries["cudnn"] = "superoffload_cudnn_frontend"
        return libraries

    def build(self):
        if self._libraries():
            cmake = CMake(self)
            cmake.configure()
            for target in self._libraries().values():
                cmake.build(target=target)

    def package(self):
        at = self.package_folder
        copy(self, "LICENSE", self.source_folder, os.path.join(at, "licenses"))
        for pattern in "*.hpp", "*.cuh":
            copy(self, pattern, os.path.join(self.source_folder, "include"), os.path.join(at, "include"))
        for pattern in "Find*.cmake", "superoffload-nvidia.cmake":
            copy(self, pattern, os.path.join(self.source_folder, "cmake"), os.path.join(at, "cmake"))
        for library in self._libraries().values():
            copy(self, f"lib{library}.a", self.build_folder, os.path.join(at, "lib"), keep_path=False)

    def _component(self, name, requires=(), library=None, found=()):
        component = self.cpp_info.components[name]
        component.set_property("cmake_target_name", f"superoffload::{name}")
        component.requires = list(requires)
        component.bindirs = []
        component.libdirs = ["lib"] if library else []
        component.libs = [library] if library else []
        if found:
            component.set_property("cmake_extra_interface_libs", list(found))
        return component

    def package_info(self):
        # superoffload::superoffload is what it is in the CMake package: everything that is header-only.
        self.cpp_info.set_property("cmake_target_name", "superoffload::package")
        finds = []

        told = load(self, os.path.join(self.recipe_folder, "cmake/superoffload-targets.cmake"))
        lists = {name: words.split() for name, words in re.findall(r"^set\(superoffload_(\w+) ([^)]*)\)", told, re.MULTILINE)}
        headers = [name for name in lists["COMPONENTS"] if name != "compiled"]
        for name in headers + [name for name in lists["optional_COMPONENTS"] if self.options.get_safe(name)]:
            requires, found = list(lists.get(f"{name}_LINKS", [])), []
            for package in lists.get(f"{name}_NEEDS", []):
                name_here = PACKAGES.get(package, package)
                if name_here in self.dependencies:
                    requires.append(f"{name_here}::{name_here}")
                else:  # the machine's own: a platform_requires, and threads
                    self.cpp_info.ignored_requires.append(name_here)
                    finds.append(package)
                    found.append(lists[f"package_{package}"][0])
            self._component(name, requires, found=found)
        self.cpp_info.components["core"].builddirs = ["cmake"]  # our find modules
        # AdamW gives the same bits on every processor; where a product and a sum are rounded once, it does not.
        self.cpp_info.components["cpu"].cxxflags = ["-ffp-contract=off"]
        if self.options.mpi:
            # Without MPI's own C++ functions, which newer versions do not have.
            self.cpp_info.components["mpi"].defines = ["SUPEROFFLOAD_HAS_MPI", "OMPI_SKIP_MPICXX", "MPICH_SKIP_MPICXX"]
        self._component("superoffload", headers)

        libraries = self._libraries()
        if self.options.compiled:
            self._component("compiled", ["train"], libraries["compiled"]).defines = ["SUPEROFFLOAD_COMPILED"]
            if self.options.cli:
                self._component("compiled_cli", ["cli", "compiled"], libraries["compiled_cli"])
            if self.options.mpi:
                self._component("compiled_mpi", ["mpi", "compiled"], libraries["compiled_mpi"])
        if self.options.cuda:
            finds.append("CUDAToolkit")
            toolkit = ["CUDA::cudart", "CUDA::cublasLt"]
            self._component("cuda", ["kernel"], libraries.get("cuda"), toolkit).defines = ["SUPEROFFLOAD_HAS_CUDA"]
            if self.options.compiled:
                self._component("compiled_cuda", ["cuda", "compiled"], libraries["compiled_cuda"]).system_libs = ["dl"]
        if self.options.cudnn:
            component = self._component("cudnn", ["cuda"], libraries["cudnn"])
            component.defines = ["SUPEROFFLOAD_HAS_CUDNN", 'SUPEROFFLOAD_CUDNN_LIBRARY="libcudnn.so.9"']
            component.system_libs = ["dl"]
        if self.options.nccl:
            finds.append("NCCL")
            component = self._component("nccl", ["cuda", "comm"], libraries.get("nccl"), ["NCCL::headers"])
            component.defines = ["SUPEROFFLOAD_HAS_NCCL", 'SUPEROFFLOAD_NCCL_LIBRARY="libnccl.so.2"']
            component.system_libs = ["dl"]
            if self.options.compiled:
                self._component("compiled_nccl", ["nccl", "compiled_cuda"], libraries["compiled_nccl"])
        self.cpp_info.set_property("cmake_extra_dependencies", finds)
