#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail

usage() {
  cat <<'END'
Usage: tests/fresh_machine.sh [--tests]

Runs the README's first commands on a bare Debian 12, each from scratch: a minimal root, a clone of the current
commit, no compiler, no ccache store. A package that a command uses and does not install fails it.

  (nothing)  examples/quickstart.sh: as root, and then CMake configures with the release preset and without one; and as a
             user without sudo: the command ends with exit code 4 and the line to run; root runs that line, and the user's
             next run reaches compilation
  --tests    tests/run.sh in the same way, too
  --help     this text

Needs root, mmdebstrap (installed with apt where it is missing) or debootstrap, and the network; without them it is
skipped. It uses this machine's package sources, proxies and resolver. The bare root is kept in
${XDG_CACHE_HOME:-~/.cache}/superoffload; delete it there to get a new one. Logs of what failed are printed.

The last line is the total. Exit status: 0 all passed, 1 a command failed, 2 a wrong argument, 77 all were skipped.
END
}

commands=(examples/quickstart.sh)
for argument in "$@"; do
  case $argument in
    --tests) commands+=(tests/run.sh) ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
done

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
release=bookworm
cache=${XDG_CACHE_HOME:-$HOME/.cache}/superoffload
passed=0 failed=0 skipped=0

say() { printf '==> %s\n' "$*"; }
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

# Everything that runs ends with this script, however it ends. Mounts belong to its namespace and end with it.
running=
scratch=
clean_up() {
  if [[ -n $running ]]; then
    kill "$running" 2>/dev/null || true
    wait "$running" 2>/dev/null || true
  fi
  if [[ -n $scratch ]]; then
    rm -rf --one-file-system "$scratch"
  fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# limited SECONDS COMMAND...: runs it in the background and waits, so that a signal is handled before it has ended.
limited() {
  local status=0
  timeout --kill-after=5 "$@" </dev/null &
  running=$!
  wait "$running" || status=$?
  running=
  return $status
}

((EUID == 0)) || skip "it needs root"
unshare --mount --pid --fork --kill-child true 2>/dev/null || skip "this root may not make namespaces (unshare)"
if ! command -v mmdebstrap >/dev/null && ! command -v debootstrap >/dev/null; then
  if ! command -v apt-get >/dev/null || ! { limited 300 apt-get update -qq &&
    limited 300 env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends mmdebstrap; } >/dev/null; then
    skip "there is neither mmdebstrap nor debootstrap, and apt-get could not install mmdebstrap"
  fi
fi

scratch=$(mktemp -d "${TMPDIR:-/var/tmp}/superoffload_fresh_machine.XXXXXX")
chmod 755 "$scratch"
settings=$scratch/settings  # this machine's, for every root
mkdir -p "$settings/etc/apt/sources.list.d" "$settings/etc/apt/apt.conf.d" "$settings/etc/ssl/certs"

# The sources with this release of Debian; a bare machine has no others.
has_word() { grep -qE "(^|[[:space:]])($1)([[:space:]]|\$)" "$2"; }
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
  if [[ ! -e $file ]] || ! has_word "$release(-updates|-security)?" "$file" || ! has_word main "$file"; then
    continue
  fi
  case $file in
    *.sources) cp "$file" "$settings/etc/apt/sources.list.d" ;;
    *) grep -E "[[:space:]]$release(-updates|-security)?[[:space:]]+main" "$file" >>"$settings/etc/apt/sources.list" || true ;;
  esac
done
if [[ -z $(ls "$settings/etc/apt/sources.list.d") && ! -s $settings/etc/apt/sources.list ]]; then
  printf 'deb http://deb.debian.org/debian %s main\n' "$release" "$release-updates" >"$settings/etc/apt/sources.list"
fi
apt-config dump 2>/dev/null | grep -E '^Acquire::(https?::|Check-|Retries|ForceIPv)' >"$settings/etc/apt/apt.conf.d/90host" || true
for file in /etc/resolv.conf /etc/hosts; do
  [[ ! -e $file ]] || cp "$file" "$settings$file"  # the target of a link
done
if grep -rqs https: "$settings/etc/apt" && [[ -e /etc/ssl/certs/ca-certificates.crt ]]; then
  cp /etc/ssl/certs/ca-certificates.crt "$settings/etc/ssl/certs"
fi
proxies=()
for name in http_proxy https_proxy ftp_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY; do
  [[ -z ${!name:-} ]] || proxies+=("$name=${!name}")
done

bare=$cache/debian-$release-$(dpkg --print-architecture 2>/dev/null || uname -m).tar
make_bare_root() {
  local sources=("$settings"/etc/apt/sources.list.d/*.sources)
  mkdir -p "$cache" || return
  if command -v mmdebstrap >/dev/null; then
    [[ -e ${sources[0]} ]] || sources=()
    [[ ! -s $settings/etc/apt/sources.list ]] || sources+=("$settings/etc/apt/sources.list")
    limited 900 mmdebstrap --quiet --variant=minbase --aptopt="$settings/etc/apt/apt.conf.d/90host" \
      "$release" "$bare.$$.tar" "${sources[@]}" || return
  else
    local mirror
    mirror=$(grep -rhoE 'https?://[^[:space:]]+/debian/?([[:space:]]|$)' "$settings/etc/apt" | head -n 1 | tr -d '[:space:]')
    limited 900 debootstrap --variant=minbase "$release" "$scratch/bare" "${mirror:-http://deb.debian.org/debian}" >/dev/null &&
      limited 300 tar -C "$scratch/bare" -cf "$bare.$$.tar" . || return
  fi
  mv "$bare.$$.tar" "$bare"
}
if [[ ! -s $bare ]]; then
  say "making a bare root: $bare"
  make_bare_root || {
    rm -f "$bare.$$.tar"
    skip "a bare root could not be made: the network, the package sources, or the messages above"
  }
fi

# new_machine UID: the bare root, with a clone in this user's home.
machine=$scratch/machine
log=$scratch/log
new_machine() {
  rm -rf --one-file-system "$machine"
  mkdir "$machine" &&
    limited 300 tar -C "$machine" -xf "$bare" &&
    rm -rf "$machine"/etc/apt/sources.list* &&
    cp -r "$settings/etc" "$machine" &&
    mkdir -p "$machine/home/user" &&
    limited 120 git clone -q "file://$PWD" "$machine/home/user/superoffload" &&
    chown -R "$1:$1" "$machine/home/user"
}

# on_machine UID SECONDS SCRIPT: runs SCRIPT in the clone, with its output in the log. Processes that it leaves end with it.
on_machine() {
  local user=$1 seconds=$2 script=$3
  # shellcheck disable=SC2016
  limited "$seconds" unshare --mount --pid --fork --kill-child bash -c '
    root=$1 user=$2
    mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" && mount --rbind /dev "$root/dev" &&
      mount -t tmpfs tmpfs "$root/dev/shm" || exit 125
    shift 2
    exec chroot --userspec="$user:$user" "$root" "$@"' \
    mounts "$machine" "$user" \
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/home/user "${proxies[@]}" \
    bash -c "cd /home/user/superoffload && { $script; }" >>"$log" 2>&1
}

# as_root COMMAND SECONDS: checks that it succeeds, and that its output shows it.
as_root() {
  new_machine 0 && on_machine 0 "$2" "$1" || return
  case $1 in
    examples/quickstart.sh)
      grep -q '^exported to quickstart-output/model' "$log" &&
        on_machine 0 120 'cmake --preset release && cmake -S . -B build'
      ;;
    # A skipped test means that a package is missing.
    tests/run.sh) grep -q '^==> all passed' "$log" && ! grep -qF '***Skipped' "$log" ;;
  esac
}

# as_user COMMAND: checks that it stops with the line to run, and then compiles.
as_user() {
  local line status=0
  new_machine 1000 || return
  on_machine 1000 60 "$1" || status=$?
  if ((status != 4)); then
    echo "the user's first run ended with $status, expected 4" >>"$log"
    return 1
  fi
  line=$(grep '^apt-get update && apt-get install ' "$log") || return
  on_machine 0 900 "$line" || return
  : >"$log"
  # The shell is the first process there: when it ends, the build ends.
  on_machine 1000 300 "$1 >/tmp/log 2>&1 & command=\$!
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

say "on a bare Debian 12: $(git rev-parse --short HEAD)$([[ -z $(git status --porcelain) ]] || echo ', without uncommitted changes')"
for command in "${commands[@]}"; do
  seconds=2400
  [[ $command != tests/run.sh ]] || seconds=7200
  check "$command as root" as_root "$command" "$seconds"
  check "$command as a user without sudo" as_user "$command"
done
finish
