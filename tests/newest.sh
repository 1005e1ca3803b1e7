#!/usr/bin/env bash
# `make test-newest`: run tests with the newest Python and zarr-python, which need a newer system than this one.
#
#   tests/newest.sh [ARGUMENT...]               pytest with these arguments; without any, all tests
#   tests/newest.sh --quick                     the tests of .ci/run: about three minutes on two cores
#   tests/newest.sh --package                   install the packages that `make package` has built, in clean environments
#   tests/newest.sh --run DIRECTORY COMMAND...  COMMAND in a copy of the project; DIRECTORY is /out there
#
# Creates a Debian forky system in .newest (a minute, once) and installs the dependency groups test and newest there.
# Needs root and debootstrap. Where a system cannot be created it says so and succeeds, except that debootstrap must be
# installed if ZARRLITE_REQUIRE_PEERS is set.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD/.newest
# what depends on the version of Python or of zarr-python: exchanged data, conformance, types and codecs, locks
quick=(
  tests/interop tests/conformance/test_zarr_python.py tests/conformance/test_running.py
  tests/data_types tests/codecs tests/metadata tests/nodes/test_array.py tests/nodes/test_group.py
  tests/adapters/test_zarr_stores.py tests/stores/test_locks.py tests/stores/test_interrupts.py
  tests/test_concurrency.py tests/test_threads.py
)

skip() { # skip REASON [EXIT CODE]
  echo "make test-newest: NOT RUN: $1" >&2
  exit "${2:-0}"
}
[ "$(id -u)" = 0 ] || skip "it must be run by root, who may use chroot and mount"
command -v apt-get >/dev/null || skip "the mirror is taken from the sources of apt, which is not installed"
command -v debootstrap >/dev/null ||
  skip "debootstrap must be installed (apt-get install debootstrap)" "${ZARRLITE_REQUIRE_PEERS:-0}"
unshare --mount true 2>/dev/null || skip "this system does not let root mount file systems"
if [ -z "${NEWEST_UNSHARED:-}" ]; then # all mounts below end with the process
  NEWEST_UNSHARED=1 exec unshare --mount "$0" "$@"
fi

if [ ! -e "$root/.complete" ]; then
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
  [ -n "$mirror" ] || skip "apt has no sources of packages"
  rm -rf --one-file-system "$root"
  packages=python3,python3-venv,python3-pip,ca-certificates
  script=/usr/share/debootstrap/scripts/sid # debootstrap itself may be older than forky
  debootstrap --variant=minbase --include=$packages forky "$root" "$mirror" $script >"$PWD/.newest.log" 2>&1 || {
    tail -n 5 "$PWD/.newest.log" >&2
    skip "debootstrap failed, see .newest.log"
  }
  touch "$root/.complete"
fi

# the certificates, the configuration of pip and the name servers of this machine
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
for file in /etc/pip.conf "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf"; do
  if [ -e "$file" ]; then install -D "$file" "$root$file"; fi
done
for place in proc dev dev/pts; do mount --bind "/$place" "$root/$place"; done

# the files of the project, without those that git ignores
rm -rf "$root/project"
mkdir "$root/project"
git ls-files -coz --exclude-standard | tar --null --ignore-failed-read -cf - -T - | tar -xf - -C "$root/project"
in_root() { # in_root COMMAND...: run a command in the copy of the project, with the Python of its environment
  local options=(HOME="$HOME" PATH=/venv/bin:/usr/bin:/bin PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore)
  # tests of zarrs, which needs an older zarr-python, and of tools that are not installed there are skipped
  chroot "$root" /usr/bin/env -u ZARRLITE_REQUIRE_PEERS -C /project "${options[@]}" "$@"
}
[ -e "$root/venv" ] || in_root python3 -m venv /venv
in_root pip install -qq -e . --group test --group newest
in_root python -c 'import sys, zarr; print(f"Python {sys.version.split()[0]}, zarr-python {zarr.__version__}")'

if [ "${1:-}" = --run ]; then
  mkdir -p "$root/out" && mount --bind "$2" "$root/out"
  in_root "${@:3}"
elif [ "${1:-}" = --package ]; then
  [ -d dist ] || skip "make package must build the packages first" 1
  cp -r dist "$root/project/"
  in_root tests/packages.sh --install python3
elif [ "${1:-}" = --quick ]; then
  in_root pytest -q -n auto --dist loadfile "${quick[@]}" "${@:2}"
else
  in_root pytest -q -n auto --dist loadfile "$@"
fi
