#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail

usage() {
  cat <<'END'
Usage: tests/packages/conan.sh [--all]

Runs `conan create`, whose test_package trains a step of a small Llama, with the system's packages as platform_requires.

  (nothing)  header-only
  --all      also as a static library; both again with the command line (cli); and where there is a CUDA toolkit, as a
             static library with CUDA and NCCL; where there is an MPI, as a static library with it

Conan is the one of PyPI, in a virtual environment that is kept in ${XDG_CACHE_HOME:-~/.cache}/superoffload; where it cannot
be had, the test is skipped.

Exit status: 0 all passed, 1 one failed, 2 a wrong argument, 77 all were skipped.
END
}

cases=(header-only)
case $#:${1:-} in
  0:) ;;
  1:--all)
    cases+=('header-only, with cli' compiled 'compiled, with cli')
    if command -v nvcc >/dev/null; then
      cases+=('with CUDA')
    fi
    if command -v mpicxx >/dev/null; then
      cases+=('compiled, with MPI')
    fi
    ;;
  1:-h | 1:--help) usage && exit 0 ;;
  *) usage >&2 && exit 2 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

# result CASE passed|FAILED|skipped [DETAIL]
result() { printf '==> packages: conan create, %s: %s\n' "$1" "$2${3:+ ($3)}"; }
skip() {
  local name
  for name in "${cases[@]}"; do result "$name" skipped "$1"; done
  exit 77
}

environment=${XDG_CACHE_HOME:-$HOME/.cache}/superoffload/conan
if ! "$environment/bin/conan" --version >/dev/null 2>&1; then
  rm -rf "$environment"
  mkdir -p "$(dirname "$environment")"
  if ! { timeout 120 python3 -m venv "$environment" && timeout 300 "$environment/bin/pip" install --quiet 'conan>=2.30,<3'; } >&2; then
    rm -rf "$environment"
    skip 'Conan could not be installed: python3 with its module venv, or the network'
  fi
fi
for header in eigen3/Eigen/Core xsimd/xsimd.hpp nlohmann/json.hpp utf8proc.h CLI/CLI.hpp; do
  [[ -e /usr/include/$header ]] || skip "it needs the system's packages: /usr/include/$header is missing"
done
command -v ninja >/dev/null || skip 'it needs ninja'

if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
  export CMAKE_CUDA_COMPILER_LAUNCHER=${CMAKE_CUDA_COMPILER_LAUNCHER-ccache}
  export CCACHE_BASEDIR=/ CCACHE_NOHASHDIR=1  # Conan's directories have new names every time
fi
CONAN_HOME=$(mktemp -d "${TMPDIR:-/var/tmp}/superoffload_conan.XXXXXX")
export CONAN_HOME
trap 'rm -rf "$CONAN_HOME"' EXIT

# create DIRECTORY [OPTIONS...]
create() {
  timeout 3000 "$environment/bin/conan" create "$1" --no-remote -pr:a tests/packages/conan_profile "${@:2}" \
    >>"$CONAN_HOME/log" 2>&1
}

# printed REGEX...: every one is in the log.
printed() {
  local regex
  for regex in "$@"; do
    if ! grep -qe "$regex" "$CONAN_HOME/log"; then
      echo "the log has no line of $regex" >>"$CONAN_HOME/log"
      return 1
    fi
  done
}

status=0
for name in "${cases[@]}"; do
  case $name in
    header-only*) options=(-s build_type=Debug) ;;  # to be compiled in less time
    compiled*) options=(-o compiled=True) ;;
    *) options=(-o compiled=True -o cuda=True -o nccl=True) ;;
  esac
  : >"$CONAN_HOME/log"
  expected=('^superoffload [0-9.]*: loss [0-9.]*, after a step [0-9.]*')
  if [[ $name == *' with cli' ]]; then
    options+=(-o cli=True)
    create tests/packages/cli11
    expected+=('^  --offload_weights' '^plan for llama')
  elif [[ $name == *' with MPI' ]]; then
    options+=(-o mpi=True)
    expected+=('^1 rank$')
  fi
  begin=$SECONDS
  if create . "${options[@]}" && printed "${expected[@]}"; then
    result "$name" passed "$((SECONDS - begin)) s"
  else
    tail -n 60 "$CONAN_HOME/log" | sed 's/^/  | /'
    result "$name" FAILED "after $((SECONDS - begin)) s"
    status=1
  fi
done
exit $status
