#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

usage() {
  cat <<'END'
Usage: tests/run.sh [--sanitizers [--once] | --long]

Builds and runs the tests, from a fresh clone on a bare Debian 12 or Ubuntu 24.04: missing packages are installed with
apt when this user may, else the line to run is printed.

  (nothing)      the whole suite, optimised, in build/release; with the GPU tests if there is a CUDA toolkit:
                 without a GPU they are skipped
  --sanitizers   the suite under AddressSanitizer and UndefinedBehaviorSanitizer (build/asan), then under
                 ThreadSanitizer (build/tsan), without the tests labelled slow; the latter without single-threaded code
  --once         with --sanitizers: the tests of each module of the library under one of them, without the programs:
                 those of modules with threads under ThreadSanitizer, all others under the two others
  --long         builds the suite, then injects faults in their long counts, which takes hours, and keeps the table in
                 bench/results/faults.json: docs/reliability.md
  --help         this text

Exit status: 0 all passed, 1 a build or a test failed, 2 a wrong argument, 4 a package is missing.
END
}

sanitizers=false
once=false
long=false
for argument in "$@"; do
  case $argument in
    --sanitizers) sanitizers=true ;;
    --once) once=true ;;
    --long) long=true ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
done
if $sanitizers && $long || $once && ! $sanitizers; then
  usage >&2
  exit 2
fi

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=cmake/bootstrap.sh
source cmake/bootstrap.sh

if ! $sanitizers && [[ $(uname -m) == x86_64 ]]; then
  optional_packages=(g++-aarch64-linux-gnu:aarch64-linux-gnu-g++ qemu-user:qemu-aarch64)
fi
if ! $sanitizers; then
  optional_packages+=(libopenmpi-dev:mpicxx openmpi-bin:mpirun iproute2:ip)
fi
ensure_build_packages doctest-dev@doctest/doctest.h python3:python3 pkg-config:pkg-config
if ((${#optional_packages[@]} > 0)); then
  (ensure_packages "${optional_packages[@]}") ||
    say "going on: without them the tests for aarch64 or of several hosts are skipped"
fi
if $sanitizers; then
  configure_options=()
  # clang takes less than half of g++'s time here, and its UndefinedBehaviorSanitizer finds more. tests/clang does not check
  # again what is compiled here.
  if [[ -z ${CXX:-} ]] && command -v clang++ >/dev/null 2>&1; then
    # --fresh: CMake drops other settings when the compiler changes.
    configure_options=(--fresh -D CMAKE_CXX_COMPILER=clang++ -D CMAKE_COMPILE_WARNING_AS_ERROR=ON)
  fi
  if $once; then
    configure_options+=(-D SUPEROFFLOAD_BUILD_EXAMPLES=OFF)
  fi
else
  choose_cuda toolkit
fi

failed=()
# check PRESET [ctest arguments...]: builds and tests; a failure is recorded, and the next steps still run.
check() {
  local preset=$1
  shift
  # In an `if`, errexit is off inside functions: a subshell keeps its own.
  set +e
  (
    set -e
    build "$preset"
  )
  local built=$?
  set -e
  if ((built != 0)); then
    failed+=("$preset: build")
    return
  fi
  say "testing '$preset'"
  # One job more than cores: some tests mostly wait.
  local run=(ctest --preset "$preset" -j$((jobs + 1)) "$@")
  # ThreadSanitizer cannot use the memory layouts of kernels with much address randomisation.
  if [[ $preset == tsan ]] && setarch -R true 2>/dev/null; then
    run=(setarch -R "${run[@]}")
  fi
  "${run[@]}" || failed+=("$preset: tests")
}

if $long; then
  build test
  python3 bench/record.py faults tests/faults/table.py --long --json || failed+=("faults")
  python3 tests/faults/table.py --page
elif $sanitizers; then
  of_both=("${configure_options[@]}")
  if $once; then
    configure_options+=(-D SUPEROFFLOAD_TEST_THREADS=OFF -D SUPEROFFLOAD_INSTRUCTION_SETS=scalar)
  fi
  check asan --label-exclude slow
  configure_options=("${of_both[@]}")
  # Under ThreadSanitizer the kernels' tests run the set in use alone.
  if [[ $(uname -m) == x86_64 ]]; then
    configure_options+=(-D SUPEROFFLOAD_INSTRUCTION_SETS=avx2)
  fi
  check tsan --label-exclude slow
else
  check test
fi

if ((${#failed[@]} > 0)); then
  say "FAILED: $(printf '%s; ' "${failed[@]}" | sed 's/; $//')"
  exit 1
fi
say "all passed"
