#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail

usage() {
  cat <<'END'
Usage: tests/docs/site.sh [--output DIR]

Builds the site with warnings as errors, and checks that every link within it leads to a file. MkDocs is the one of PyPI, of
docs/requirements.txt, in a virtual environment that is kept in ${XDG_CACHE_HOME:-~/.cache}/superoffload; where it cannot be had,
the test is skipped.

  (nothing)      into a temporary directory
  --output DIR   keeps the site

Exit status: 0 built, 1 a warning or a broken link, 2 a wrong argument, 77 skipped.
END
}

output=
case $#:${1:-} in
  0:) ;;
  2:--output) output=$(realpath -m "$2") ;;
  1:-h | 1:--help) usage && exit 0 ;;
  *) usage >&2 && exit 2 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

environment=${XDG_CACHE_HOME:-$HOME/.cache}/superoffload/site
if ! cmp -s docs/requirements.txt "$environment/installed"; then
  rm -rf "$environment"
  mkdir -p "$(dirname "$environment")"
  if ! { timeout 120 python3 -m venv "$environment" &&
    timeout 300 "$environment/bin/pip" install --quiet -r docs/requirements.txt; } >&2; then
    rm -rf "$environment"
    echo '==> the site: skipped (MkDocs could not be installed: python3 with its module venv, or the network)'
    exit 77
  fi
  cp docs/requirements.txt "$environment/installed"
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
output=${output:-$scratch/site}
NO_MKDOCS_2_WARNING=1 timeout 300 "$environment/bin/mkdocs" build --quiet --strict --site-dir "$output" || exit 1
python3 tests/docs/links.py "$output"
