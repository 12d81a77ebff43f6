#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail

usage() {
  cat <<'END'
Usage: tests/fresh_machine.sh [--tests] [--keep-objects] [--release NAME]

Runs the README's first commands on a bare Debian, each from scratch: a minimal root, a clone of the current commit, no
compiler, no ccache store. A package that a command uses and does not install fails it.

  (nothing)       examples/quickstart.sh: as root, and then CMake configures with the release preset and without one; and
                  as a user without sudo: the command ends with exit code 4 and the line to run; root runs that line, and
                  the user's next run reaches compilation
  --tests         tests/run.sh in the same way, too
  --keep-objects  what was compiled goes into this machine's ccache store, so that its next build compiles the rest
  --release NAME  Debian's release: bookworm (12) unless given
  --help          this text

Needs root, mmdebstrap (installed with apt where it is missing) or debootstrap, and the network; without them it is
skipped. It uses this machine's package sources, proxies and resolver. The bare root is kept in
${XDG_CACHE_HOME:-~/.cache}/superoffload; delete it there to get a new one. Logs of what failed are printed.

The last line is the total. Exit status: 0 all passed, 1 a command failed, 2 a wrong argument, 77 all were skipped.
END
}

commands=(examples/quickstart.sh)
keeps_objects=false
release=bookworm
while (($# > 0)); do
  case $1 in
    --tests) commands+=(tests/run.sh) ;;
    --keep-objects) keeps_objects=true ;;
    --release) [[ ${2:-} =~ ^[a-z]+$ ]] || { usage >&2 && exit 2; }; release=$2 && shift ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift
done

# Tests that compare with programs of others, which tests/run.sh does not install: TensorBoard, DeepSpeed, Chromium, wandb,
# Doxygen, MkDocs, transformers.
optional=(examples.event_files examples.launchers examples.page examples.wandb_sync docs.api docs.site peers.configurations)

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
passed=0 failed=0 skipped=0

# result CASE passed|FAILED|skipped [DETAIL]
result() { say "fresh machine: $1: $2${3:+ ($3)}"; }
finish() {
  say "fresh machine: $passed passed, $failed failed, $skipped skipped"
  ((failed == 0)) || exit 1
  ((passed > 0)) || exit 77
  exit 0
}
skip() {
  local command user
  for command in "${commands[@]}"; do
    for user in root 'a user without sudo'; do
      result "$command as $user" skipped "$1"
      skipped=$((skipped + 1))
    done
  done
  finish
}

# shellcheck source=tests/bare_root.sh
source tests/bare_root.sh

# new_clone UID: a new machine, with a clone in this user's home.
new_clone() {
  new_machine &&
    limited 120 git clone -q "file://$PWD" "$machine/home/user/superoffload" &&
    chown -R "$1:$1" "$machine/home/user"
}

# in_clone UID SECONDS SCRIPT
in_clone() { on_machine "$1" "$2" "cd superoffload && { $3; }"; }

# Names in a store are hashes of what was compiled, with which compiler and how.
keep_objects() {
  local store=${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/ccache}
  if $keeps_objects && [[ -d $machine/home/user/.cache/ccache ]]; then
    mkdir -p "$store"
    cp -rn "$machine/home/user/.cache/ccache/." "$store" || true  # some versions fail where a file is there already
  fi
}

# as_root COMMAND SECONDS: checks that it succeeds, and that its output shows it.
as_root() {
  new_clone 0 && in_clone 0 "$2" "$1" || return
  case $1 in
    examples/quickstart.sh)
      grep -q '^exported to quickstart-output/model' "$log" &&
        in_clone 0 120 'cmake --preset release && cmake -S . -B build' &&
        keep_objects
      ;;
    # Any other skipped test means that a package is missing.
    tests/run.sh)
      grep -q '^==> all passed' "$log" &&
        ! grep -F '***Skipped' "$log" | grep -vE "Test +#[0-9]+: ($(IFS='|' && echo "${optional[*]}")) "
      ;;
  esac
}

# as_user COMMAND: checks that it stops with the line to run, and then compiles.
as_user() {
  local line status=0
  new_clone 1000 || return
  in_clone 1000 60 "$1" || status=$?
  if ((status != 4)); then
    echo "the user's first run ended with $status, expected 4" >>"$log"
    return 1
  fi
  line=$(grep '^apt-get update && apt-get install ' "$log") || return
  in_clone 0 900 "$line" || return
  : >"$log"
  # The shell is the first process there: when it ends, the build ends.
  in_clone 1000 300 "$1 >/tmp/log 2>&1 & command=\$!
    while kill -0 \$command 2>/dev/null && ! grep -q '^==> building with' /tmp/log; do sleep 1; done
    cat /tmp/log; grep -q '^==> building with' /tmp/log" || return
  ! grep -q '^apt-get ' "$log"  # that line was enough
}

# check CASE FUNCTION ARGUMENTS...
check() {
  local name=$1 status=0 begin=$SECONDS
  shift
  : >"$log"
  "$@" || status=$?
  if ((status == 0)); then
    result "$name" passed "$((SECONDS - begin)) s"
    passed=$((passed + 1))
  else
    tail -n 60 "$log" | sed 's/^/  | /'
    result "$name" FAILED "after $((SECONDS - begin)) s, status $status"
    failed=$((failed + 1))
  fi
  rm -rf --one-file-system "$machine"
}

say "on a bare Debian $release: $(git rev-parse --short HEAD)$([[ -z $(git status --porcelain) ]] || echo ', without uncommitted changes')"
for command in "${commands[@]}"; do
  seconds=2400
  [[ $command != tests/run.sh ]] || seconds=7200
  check "$command as root" as_root "$command" "$seconds"
  check "$command as a user without sudo" as_user "$command"
done
finish
