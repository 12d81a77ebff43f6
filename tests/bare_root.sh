# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests that need a machine with nothing on it: a bare Debian in a directory, 12 unless the caller sets `release` to
# another release's name. Needs root, namespaces, mmdebstrap (installed with apt where it is missing) or debootstrap, and the
# network.
#
# The caller runs in the repository's root under `set -uo pipefail` and defines skip REASON, which does not return.

release=${release:-bookworm}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/superoffload

say() { printf '==> %s\n' "$*"; }

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

scratch=$(mktemp -d "${TMPDIR:-/var/tmp}/superoffload_bare_root.XXXXXX")
chmod 755 "$scratch"
settings=$scratch/settings  # this machine's, for every root
mkdir -p "$settings/etc/apt/sources.list.d" "$settings/etc/apt/apt.conf.d" "$settings/etc/dpkg/dpkg.cfg.d" "$settings/etc/ssl/certs"
echo force-unsafe-io >"$settings/etc/dpkg/dpkg.cfg.d/bare_root"  # thrown away, it need not survive a crash

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
  suites=("$release")
  [[ $release == sid ]] || suites+=("$release-updates")
  printf 'deb http://deb.debian.org/debian %s main\n' "${suites[@]}" >"$settings/etc/apt/sources.list"
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

# new_machine: a fresh copy of the bare root, with a home for a user.
machine=$scratch/machine
log=$scratch/log
new_machine() {
  rm -rf --one-file-system "$machine"
  mkdir "$machine" &&
    limited 300 tar -C "$machine" -xf "$bare" &&
    rm -rf "$machine"/etc/apt/sources.list* &&
    cp -r "$settings/etc" "$machine" &&
    mkdir -p "$machine/home/user"
}

# on_machine UID SECONDS SCRIPT: runs SCRIPT in the user's home, with its output in the log. Processes that it leaves end
# with it.
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
    bash -c "cd && { $script; }" >>"$log" 2>&1
}

