#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
# Configures, builds and runs the GPU's tests: gpu_check.sh [BUILD_DIRECTORY] [CMAKE_ARGUMENTS...]
# On a host that lacks the libraries, give -DCMAKE_PREFIX_PATH=<a prefix that has them>.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${1:-$root/build/gpu}
shift || true
nvidia-smi || true
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE= -DCMAKE_CXX_FLAGS="-O1" \
  -DSUPEROFFLOAD_TEST_SOURCES=OFF "$@"
time cmake --build "$build" --target cuda_tests
ctest --test-dir "$build" -R '^cuda$' --output-on-failure --verbose
