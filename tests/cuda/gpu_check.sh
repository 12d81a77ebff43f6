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
targets=(cuda_tests)
if cmake --build "$build" --target help | grep -q cudnn_tests; then targets+=(cudnn_tests); fi
time cmake --build "$build" --target "${targets[@]}"
ctest --test-dir "$build" -R '^cu(da|dnn|dnn\.gpu)$' --output-on-failure --verbose
