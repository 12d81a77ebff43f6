# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests/run.sh and examples/quickstart.sh: installs what a bare Debian 12 or Ubuntu 24.04 lacks, decides about CUDA, builds.

# The caller runs in the repository's root, under `set -euo pipefail`.
jobs=$(nproc)

say() { printf '==> %s\n' "$*"; }

# version_at_least FOUND LEAST
version_at_least() { [[ $(printf '%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]; }

# missing_packages PACKAGE:COMMAND or PACKAGE@HEADER...: prints the Debian packages, one a line, whose command or header is
# missing. A command or header counts wherever it came from.
missing_packages() {
  local spec
  for spec in "$@"; do
    if [[ $spec == *@* ]]; then
      [[ -e /usr/include/${spec#*@} || -e /usr/local/include/${spec#*@} ]] || echo "${spec%%@*}"
    else
      command -v "${spec#*:}" >/dev/null 2>&1 || echo "${spec%%:*}"
    fi
  done
}

# Optional packages that the caller asks for later. The line for a user who may not install includes them.
optional_packages=()

# ensure_packages PACKAGE:COMMAND or PACKAGE@HEADER...: installs those that are missing.
ensure_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$@")
  if ((${#missing[@]} == 0)); then
    return
  fi
  # Not required, but it makes the next build fast.
  mapfile -t -O "${#missing[@]}" missing < <(missing_packages ccache:ccache)

  local install=(apt-get install -y --no-install-recommends "${missing[@]}")
  if ! command -v apt-get >/dev/null 2>&1; then
    say "missing, by their Debian names: ${missing[*]}. Install them and run this again."
    exit 4
  fi
  local as_root=()
  if ((EUID != 0)); then
    if command -v sudo >/dev/null 2>&1 && { sudo -n true 2>/dev/null || [[ -t 0 && -t 2 ]]; }; then
      as_root=(sudo)
    else
      say "packages are missing and this user may not install them. Run this as root, then start again:"
      mapfile -t missing < <({ printf '%s\n' "${missing[@]}"; missing_packages "${optional_packages[@]}"; } | sort -u)
      install=(apt-get install -y --no-install-recommends "${missing[@]}")
      printf 'apt-get update && %s\n' "${install[*]}"
      exit 4
    fi
  fi
  say "installing: ${missing[*]}"
  if ! "${as_root[@]}" apt-get update -qq ||
    ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "${install[@]}" >/dev/null; then
    say "the packages could not be installed. Check the network and the package sources, or run as root:"
    printf 'apt-get update && %s\n' "${install[*]}"
    exit 4
  fi
}

# The packages for building the programs, and make, for CMake without a preset. CXX, if set, is respected.
ensure_build_packages() {
  ensure_packages g++:"${CXX:-g++}" cmake:cmake make:make ninja-build:ninja \
    libeigen3-dev@eigen3/Eigen/Core libxsimd-dev@xsimd/xsimd.hpp nlohmann-json3-dev@nlohmann/json.hpp \
    libutf8proc-dev@utf8proc.h libcli11-dev@CLI/CLI.hpp "$@"
  local found
  found=$(cmake --version | head -n 1 | grep -oE '[0-9]+\.[0-9]+(\.[0-9]+)?')
  if ! version_at_least "$found" 3.25; then
    say "CMake $found is too old, 3.25 is needed (Debian 12 and Ubuntu 24.04 have it)."
    exit 4
  fi
}

# choose_cuda toolkit|gpu: sets configure_options for CMake, and prints why. With `gpu`, CUDA is built if there is a GPU; with
# `toolkit`, wherever it compiles.
choose_cuda() {
  local needs=$1 nvcc toolkit='' gpu
  for nvcc in "$(command -v nvcc || true)" "${CUDA_HOME:-}/bin/nvcc" "${CUDA_PATH:-}/bin/nvcc" /usr/local/cuda/bin/nvcc; do
    if [[ -n $nvcc && -x $nvcc ]]; then
      toolkit=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
      break
    fi
  done
  gpu=$(nvidia-smi --query-gpu=name,compute_cap --format=csv,noheader 2>/dev/null | head -n 1) || gpu=
  configure_options=(-D SUPEROFFLOAD_CUDA=OFF)
  if [[ -z $toolkit ]]; then
    echo "CUDA toolkit: not found; building for the CPU${gpu:+, although there is a GPU: ${gpu%%,*}}"
  elif [[ -z $gpu && $needs == gpu ]]; then
    echo "CUDA toolkit: found $toolkit (nvcc at $nvcc), but no GPU; building for the CPU"
  else
    configure_options=(-D SUPEROFFLOAD_CUDA=ON)
    if [[ -n $gpu ]]; then
      # Code compiled for 9.0 and later uses instructions of exactly that processor.
      local architecture=${gpu##*, }
      architecture=${architecture/./}
      ((architecture < 90)) || architecture+=a
      configure_options+=(-D SUPEROFFLOAD_CUDA_ARCHITECTURES="$architecture-real")
    fi
    echo "CUDA toolkit: found $toolkit (nvcc at $nvcc); GPU: ${gpu:-none}"
  fi
}

# build PRESET [cmake --build arguments...]: after choose_cuda.
build() {
  local preset=$1
  shift
  if command -v ccache >/dev/null 2>&1; then
    export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
    export CMAKE_CUDA_COMPILER_LAUNCHER=${CMAKE_CUDA_COMPILER_LAUNCHER-ccache}
    # Other clones of the project use what one has compiled, whatever language the compiler's messages have.
    export CCACHE_BASEDIR=${CCACHE_BASEDIR-$PWD} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR-1}
    export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS-locale}
  fi
  say "configuring the '$preset' preset"
  cmake --preset "$preset" --log-level=NOTICE "${configure_options[@]}"
  say "building with $jobs jobs"
  cmake --build --preset "$preset" --parallel "$jobs" "$@"
}
