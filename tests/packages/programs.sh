#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
#
# programs.sh CMAKE BUILD PREFIX VERSION: installs the programs in PREFIX, and checks each one there: its version, and that
# manual page and completions have every flag of --help. Completion for bash is tried.
set -euo pipefail
cmake=$1 build=$2 prefix=$3 version=$4

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

rm -rf "$prefix"
"$cmake" --install "$build" --component superoffload_programs --prefix "$prefix" >/dev/null
programs=("$prefix"/bin/*)
architectures=("$(dirname "${BASH_SOURCE[0]}")"/../../examples/finetune_*)
expected=$((${#architectures[@]} + 2))  # and finetune and tokenize
((${#programs[@]} == expected)) || fail "expected $expected programs in $prefix/bin, found: ${programs[*]}"

for file in "${programs[@]}"; do
  program=$(basename "$file")
  said=$("$file" --version)
  [[ $said == "$program (superoffload) $version" ]] || fail "$program --version printed '$said'"

  mapfile -t flags < <("$file" --help | grep -oE '^  -[^ ]+' | tr -d ' ' | tr , '\n')
  [[ " ${flags[*]} " == *" --model "* ]] || fail "$program --help lists no --model, but: ${flags[*]}"
  man=$(sed 's/\\-/-/g' "$prefix/share/man/man1/$program.1")
  zsh=$(<"$prefix/share/zsh/site-functions/_$program")
  fish=$(<"$prefix/share/fish/vendor_completions.d/$program.fish")
  for flag in "${flags[@]}"; do
    [[ $man =~ \\fB([^\\]*, )?"$flag"(,|\\fR) ]] || fail "$program.1 lacks $flag"
    [[ $zsh == *"'${flag}["[A-Za-z]* ]] || fail "zsh's completion of $program lacks $flag, or its description"
    [[ $flag != --* || $fish == *" -l ${flag#--} "* ]] || fail "fish's completion of $program lacks $flag"
  done
done

compopt() { :; }  # of an interactive shell
# completes EXPECTED WORDS...: what is offered for the last word.
completes() {
  local expected=$1
  shift
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
  "_superoffload_$1"
  [[ ${COMPREPLY[*]} == "$expected" ]] || fail "$*: completes to '${COMPREPLY[*]}', expected '$expected'"
}
for program in finetune tokenize; do
  # shellcheck source=/dev/null
  source "$prefix/share/bash-completion/completions/$program"
done
cd "$prefix"
completes --dtype finetune --dt
completes 'float32 bf16 fp8' finetune --dtype ''
completes bf16 finetune --dtype b
completes 'none every_block auto offload' finetune --activation-checkpointing =
completes auto finetune --activation_checkpointing = a
completes bin finetune --model b
completes 'auto' finetune --resume a
completes 'share/doc' finetune --dataset share/do
completes '' finetune --max_steps ''
completes '--no_special --no-special' tokenize --no
