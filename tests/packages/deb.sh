#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail

usage() {
  cat <<'END'
Usage: tests/packages/deb.sh [BUILD]

Packs the programs that are built in BUILD (build/release) as .deb and .tar.gz with cpack, and installs each alone on a
bare Debian 12, with apt and with tar: a user then trains a step there and saves it, every program says its version, and
man, bash, fish and zsh read what was installed for them. Removed, the package leaves nothing. Programs with CUDA get the
toolkit's libraries that they name in stand-ins for NVIDIA's packages.

Needs root, mmdebstrap or debootstrap, the network, and Debian's tools; without them it is skipped.

Exit status: 0 all passed, 1 one failed, 2 a wrong argument, 77 all were skipped.
END
}

build=build/release
case $#:${1:-} in
  1:-h | 1:--help) usage && exit 0 ;;
  1:-*) usage >&2 && exit 2 ;;
  0:) ;;
  1:*) build=$(realpath -- "$1") ;;
  *) usage >&2 && exit 2 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

status=0
# result CASE passed|FAILED|skipped [DETAIL]
result() { say "packages: $1: $2${3:+ ($3)}"; }
skip() {
  result 'the .deb' skipped "$1"
  result 'the .tar.gz' skipped "$1"
  exit 77
}

# shellcheck source=tests/bare_root.sh
source tests/bare_root.sh
for tool in cpack dpkg-shlibdeps dpkg-deb; do
  command -v "$tool" >/dev/null || skip "it needs $tool (Debian: cmake, dpkg-dev)"
done

packages=$scratch/packages
pack() { limited 300 cpack --config "$build/CPackConfig.cmake" -B "$packages" -G 'DEB;TGZ' >>"$log" 2>&1; }

# stand_in PACKAGE LIBRARY: a package that has this library of the toolkit, and nothing else.
stand_in() {
  local root=$scratch/$1
  mkdir -p "$root/DEBIAN" "$root$(dirname "$2")" &&
    cp -L "$2" "$root$2" &&
    printf '%s\n' "Package: $1" 'Version: 1' 'Architecture: all' 'Maintainer: nobody' 'Description: stand-in' \
      >"$root/DEBIAN/control" &&
    dpkg-deb --build -Znone "$root" "$packages/$1.deb" >>"$log" && rm -r "$root"
}

# Libraries of the toolkit that the programs link and that no package of Debian has.
add_cuda() {
  local package library
  while read -r library; do
    case $library in
      */libcudart.so.*) package=cuda-cudart ;;
      */libcublas*.so.*) package=libcublas ;;
      *) continue ;;
    esac
    package=$(dpkg-deb --field "$packages"/superoffload*.deb Depends | grep -oE "$package-[0-9]+-[0-9]+") || continue
    stand_in "$package" "$library" || return
  done < <(ldd "$build/bin/finetune_llama" | awk '$3 ~ "^/" { print $3 }')
}

install='export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && apt-get install -qq --no-install-recommends'

# trains BIN: as a user, on what is at home.
trains() {
  on_machine 1000 120 "set -e
    $1/finetune --model tiny_llama --dataset alpaca.json --output_dir tuned --max_length 64 --max_steps 1
    test -s tuned/model/model.safetensors
    for program in $1/finetune* $1/tokenize; do \$program --version; done
    test \"\$(echo '\"text\"' | $1/tokenize --model tuned/model | head -c 1)\" = ["
}

as_deb() {
  new_machine && cp -r "$packages"/*.deb examples/models/tiny_llama "$machine/home/user" &&
    cp examples/data/alpaca_en_demo.json "$machine/home/user/alpaca.json" &&
    chown -R 1000:1000 "$machine/home/user" || return
  local name
  name=$(dpkg-deb --field "$packages"/superoffload*.deb Package) || return
  # Nothing else is there yet that the programs could find.
  on_machine 0 300 "$install ./*.deb && dpkg --verify $name" && trains /usr/bin || return
  # shellcheck disable=SC2016
  on_machine 0 300 "$install man-db bash-completion fish zsh"' && set -e
    test "$(man --warnings -E UTF-8 finetune 2>&1 >page)" = ""
    grep -q "^ *--max_grad_norm FLOAT" page
    whatis finetune_llama tokenize
    test "$(fish -c "complete -C \"finetune --dtype b\"" | cut -f 1)" = bf16
    zsh -c "autoload -U compinit && compinit -D && echo \$_comps[finetune]" | grep -x _finetune
    for file in /usr/share/zsh/vendor-completions/_{finetune,tokenize}*; do zsh -n $file; done
    bash -ic "source /usr/share/bash-completion/bash_completion; _completion_loader finetune_phi3; complete -p finetune_phi3"
    dpkg --purge '"$name"'
    test "$(find / -xdev -path "*superoffload*" -not -path "/home/*" -not -path "/proc/*" -not -path "*/apt/*" | head)" = ""' || return
}

as_archive() {
  new_machine && cp -r examples/models/tiny_llama "$machine/home/user" &&
    cp examples/data/alpaca_en_demo.json "$machine/home/user/alpaca.json" &&
    mkdir "$machine/opt/programs" && tar -C "$machine/opt/programs" --strip-components 1 -xf "$packages"/superoffload*.tar.gz &&
    chown -R 1000:1000 "$machine/home/user" || return
  local package
  for package in "$packages"/{cuda-cudart,libcublas}-*.deb; do
    [[ ! -e $package ]] || dpkg-deb -x "$package" "$machine" || return
  done
  on_machine 0 300 "$install libutf8proc2 libstdc++6" && trains /opt/programs/bin
}

# check CASE FUNCTION
check() {
  local begin=$SECONDS
  : >"$log"
  if "$2"; then
    result "$1" passed "$((SECONDS - begin)) s"
  else
    tail -n 60 "$log" | sed 's/^/  | /'
    result "$1" FAILED "after $((SECONDS - begin)) s"
    status=1
  fi
  rm -rf --one-file-system "$machine"
}

if ! { mkdir "$packages" && pack && add_cuda; }; then
  cat "$log"
  result 'the .deb' FAILED 'it could not be made'
  result 'the .tar.gz' FAILED 'it could not be made'
  exit 1
fi
(cd "$packages" && say "packages: $(echo superoffload*.deb superoffload*.tar.gz)")
check 'the .deb' as_deb
check 'the .tar.gz' as_archive
exit $status
