#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Checks the vcpkg port, without vcpkg: its manifest against vcpkg's schema and format; its portfile by running every step
of it (vcpkg_port.cmake); what that installs against the rules of vcpkg's review; and its usage in a project that does what
it says. With --tools the programs are built, too."""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Features that are a dependency alone: the portfile does nothing for them.
DEPENDENCY_ALONE = {"cli"}
# The ports of the registry that the manifest may name, as of 2026-08: each is in microsoft/vcpkg's ports under this name.
REGISTRY = {"cli11", "cuda", "cudnn", "cudnn-frontend", "eigen3", "mpi", "nccl", "nlohmann-json", "utf8proc",
            "vcpkg-cmake", "vcpkg-cmake-config", "xsimd"}
HELPERS = {"vcpkg-cmake", "vcpkg-cmake-config"}
NAME = r"[a-z0-9]+(-[a-z0-9]+)*"
# In the order in which `vcpkg format-manifest` writes them.
FIELDS = ["name", "version", "port-version", "description", "homepage", "documentation", "license", "supports", "dependencies",
          "default-features", "features"]
OF_FEATURE = ["description", "supports", "license", "dependencies"]
OF_DEPENDENCY = ["name", "host", "default-features", "features", "platform", "version>="]
PLATFORM = r"(\s|[()&|!,]|linux|x64|arm64|android)+"


def expect(condition, *why):
    if not condition:
        sys.exit(" ".join(map(str, why)))


def expect_fields(where, given, known, required):
    expect(isinstance(given, dict), f"{where}: expected an object")
    expect(set(given) <= set(known), f"{where}: unknown fields {sorted(set(given) - set(known))}")
    expect(set(required) <= set(given), f"{where}: lacks {sorted(set(required) - set(given))}")
    expect(list(given) == [field for field in known if field in given], f"{where}: expected the order {known}")


def check_dependencies(where, dependencies, own, features):
    names = [entry if isinstance(entry, str) else entry.get("name") for entry in dependencies]
    expect(names == sorted(names), f"{where}: dependencies are not sorted: {names}")
    for name, entry in zip(names, dependencies):
        expect(name == own or name in REGISTRY, f"{where}: there is no port '{name}'")
        if isinstance(entry, str):
            expect(name not in HELPERS, f"{where}: {name} has to be a host dependency")
            continue
        expect_fields(f"{where}: {name}", entry, OF_DEPENDENCY, ["name"])
        expect(len(entry) > 1, f"{where}: {name}: expected the name alone, not an object")
        expect((name in HELPERS) == entry.get("host", False), f"{where}: {name}: host is wrong")
        for feature in entry.get("features", []):
            expect(name == own and feature in features, f"{where}: {name} has no feature '{feature}'")
    return set(names)


def check_manifest(port, version):
    file = port / "vcpkg.json"
    text = file.read_text()
    manifest = json.loads(text)
    expect(text == json.dumps(manifest, indent=2) + "\n", f"{file}: not as `vcpkg format-manifest` writes it")
    expect_fields(file, manifest, FIELDS, ["name", "version", "description", "license", "dependencies"])
    name = manifest["name"]
    expect(re.fullmatch(NAME, name) and name == port.name, f"{file}: name is '{name}', expected '{port.name}'")
    expect(manifest["version"] == version, f"{file}: version is {manifest['version']}, expected {version}")
    expect(manifest["license"] == "Apache-2.0", f"{file}: license is '{manifest['license']}'")
    features = manifest["features"]
    expect(list(features) == sorted(features), f"{file}: features are not sorted")
    needed = check_dependencies(file, manifest["dependencies"], name, features)
    expect(HELPERS <= needed, f"{file}: expected the helpers {sorted(HELPERS)}")
    supports = [manifest.get("supports")]
    for feature, told in features.items():
        where = f"{file}: {feature}"
        expect(re.fullmatch(NAME, feature), f"{where}: not a name")
        expect_fields(where, told, OF_FEATURE, ["description"])
        check_dependencies(where, told.get("dependencies", []), name, features)
        supports.append(told.get("supports"))
    for expression in filter(None, supports):
        expect(re.fullmatch(PLATFORM, expression), f"{file}: '{expression}' is no platform expression")
    portfile = (port / "portfile.cmake").read_text()
    used = set(re.findall(r"^ +(\w+) +SUPEROFFLOAD_\w+$", portfile, re.MULTILINE))
    mapped = set(features) - DEPENDENCY_ALONE
    expect(used == mapped, f"{port}/portfile.cmake: maps the features {sorted(used)}, expected {sorted(mapped)}")
    for feature in DEPENDENCY_ALONE:
        expect(features.get(feature, {}).get("dependencies"), f"{file}: {feature}: expected a feature with dependencies")
    for path in port.iterdir():
        expect(b"\r" not in path.read_bytes(), f"{path}: expected line ends without carriage return")
    return features


def run(command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=3000, **options)
    expect(done.returncode == 0, f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def check_installed(packages, port, places, forbidden):
    expect({path.name for path in packages.iterdir()} == places, f"{packages}: expected {places}, found",
           sorted(path.name for path in packages.iterdir()))
    for path in packages.rglob("*"):
        if path.is_dir():
            expect(any(path.iterdir()), f"{path} is empty")
        elif path.suffix in (".cmake", ".pc", ".hpp", ""):
            if "tools" not in path.parts:
                content = path.read_text()
                for text in forbidden:
                    expect(str(text) not in content, f"{path} names {text}")
    share = packages / "share" / port.name
    for file in "copyright", "usage", f"{port.name}-config.cmake", f"{port.name}-config-version.cmake":
        expect((share / file).is_file(), f"{share / file} is missing")
    expect({path.name for path in (packages / "share").iterdir()} == {port.name, "pkgconfig"}, f"{share.parent}: found",
           sorted(path.name for path in share.parent.iterdir()))


def check_usage(cmake, port, packages, directory):
    """The usage's ways, in a project each. That of the feature cuda needs a CUDA toolkit; that of mpi is
    checked where there is an MPI."""
    first, compiled, cli, _, mpi = re.findall(r"((?:^    .*\n)+)", (port / "usage").read_text(), re.MULTILINE)
    find_package = first.splitlines(keepends=True)[0]
    expect("find_package" in find_package and "::compiled_cli" in cli and "::compiled_mpi" in mpi, f"{port}/usage: expected code")

    def project(name, kind, source, code, *options):
        """A target `main` with this code of the usage; built as a library, it does not wait for those that it links."""
        at = directory / name
        at.mkdir(parents=True)
        (at / "main.cpp").write_text(source + "int main() { return SUPEROFFLOAD_VERSION_MAJOR; }\n")
        (at / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(consumer LANGUAGES CXX)\n"
                                           f"{kind}(main main.cpp)\n" + code)
        return [cmake, "-S", at, "-B", at / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={packages}",
                "-DCMAKE_OPTIMIZE_DEPENDENCIES=ON", *options]

    version = "#include <superoffload/core/version.hpp>\n"
    error = "#include <superoffload/core/error.hpp>\n"
    declared = "#ifndef SUPEROFFLOAD_COMPILED\n#error expected declarations only\n#endif\n"
    flags = "#include <superoffload/cli/run.hpp>\n"
    ways = [("header_only", "add_executable", error, first),
            ("compiled", "add_library", declared + error, find_package + compiled),
            ("cli", "add_library", declared + flags, cli)]
    if shutil.which("mpicxx"):
        ways.append(("mpi", "add_library", declared + "#include <superoffload/mpi/membership.hpp>\n", mpi))
    for name, kind, source, code in ways:
        run(project(name, kind, version + source, code))
        run([cmake, "--build", directory / name / "build"])
        cache = (directory / name / "build/CMakeCache.txt").read_text()
        expect(f"superoffload_DIR:PATH={packages}/" in cache, f"{name}: found another package")
    # Without the feature, CLI11 need not be there.
    without = "-DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON"
    run(project("without_cli", "add_library", version, first, without))
    refused = subprocess.run([str(word) for word in project("refused", "add_library", version, cli, without)],
                             capture_output=True, text=True, check=False, timeout=600)
    expect(refused.returncode != 0 and "CLI11 was not found" in refused.stderr, f"without CLI11: {refused.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--tools", action="store_true", help="the feature, too")
    root = pathlib.Path(__file__).resolve().parents[2]
    options = parser.parse_args()
    port = root / "ports/superoffload"
    header = (root / "include/superoffload/core/version.hpp").read_text()
    version = ".".join(re.findall(r"#define SUPEROFFLOAD_VERSION_[A-Z]+ (\d+)", header))
    check_manifest(port, version)

    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        packages, build = scratch / "packages", scratch / "build"
        features = "core;cli" + (";tools" if options.tools else "") + (";mpi" if shutil.which("mpicxx") else "")
        if shutil.which("ccache"):
            os.environ.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
            os.environ.update({"CCACHE_BASEDIR": "/", "CCACHE_NOHASHDIR": "1"})
        run([options.cmake, f"-DCURRENT_PORT_DIR={port}", f"-DCURRENT_PACKAGES_DIR={packages}",
             f"-DCURRENT_BUILDTREES_DIR={build}", "-DPORT=superoffload", f"-DFEATURES={features}", "-P",
             pathlib.Path(__file__).with_name("vcpkg_port.cmake")])
        places = {"include", "share"} | ({"tools"} if options.tools else set())
        check_installed(packages, port, places, [packages, build, root])
        if options.tools:
            for tool in "finetune", "finetune_llama", "tokenize":
                printed = run([packages / "tools/superoffload" / tool, "--version"])
                expect(printed == f"{tool} (superoffload) {version}\n", f"{tool} --version printed {printed}")
        (scratch / "consumer").mkdir()
        check_usage(options.cmake, port, packages, scratch / "consumer")


if __name__ == "__main__":
    main()
