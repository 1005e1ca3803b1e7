#!/usr/bin/env bash
# `make test-newest`: run tests with the newest Python and zarr-python, which need a newer system than this one.
#
# Creates a Debian forky system in .newest (40 seconds, once), installs the dependency groups test and newest there, and
# runs pytest in it. Arguments are those of pytest; without any, all tests run, interop and conformance included.
# Needs root and debootstrap. Where these are missing it says so, and fails only with ZARRLITE_REQUIRE_PEERS=1.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD/.newest

skip() {
  echo "make test-newest: NOT RUN: $1" >&2
  exit "${ZARRLITE_REQUIRE_PEERS:-0}"
}
[ "$(id -u)" = 0 ] || skip "it must be run by root, who may use chroot and mount"
command -v debootstrap >/dev/null || skip "debootstrap must be installed (apt-get install debootstrap)"
command -v apt-get >/dev/null || skip "the mirror is taken from the sources of apt, which is not installed"

if [ ! -e "$root/.complete" ]; then
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
  [ -n "$mirror" ] || skip "apt has no sources of packages"
  rm -rf --one-file-system "$root"
  packages=python3,python3-venv,python3-pip,ca-certificates
  script=/usr/share/debootstrap/scripts/sid # debootstrap itself may be older than forky
  debootstrap --variant=minbase --include=$packages forky "$root" "$mirror" $script >"$PWD/.newest.log" 2>&1 ||
    skip "debootstrap failed, see .newest.log"
  touch "$root/.complete"
fi

# the certificates, the configuration of pip and the name servers of this machine
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
for file in /etc/pip.conf "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf"; do
  if [ -e "$file" ]; then install -D "$file" "$root$file"; fi
done

mounted=()
unmount() { for place in "${mounted[@]}"; do umount "$place"; done; }
trap unmount EXIT
for place in dev/pts dev proc; do mkdir -p "$root/$place"; done
for place in proc dev dev/pts; do
  mount --bind "/$place" "$root/$place"
  mounted=("$root/$place" "${mounted[@]}")
done

# the files of the project, without those that git ignores
rm -rf "$root/project"
mkdir "$root/project"
git ls-files -coz --exclude-standard | tar --null --ignore-failed-read -cf - -T - | tar -xf - -C "$root/project"
in_root() { chroot "$root" /usr/bin/env HOME="$HOME" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore "$@"; }
[ -e "$root/venv" ] || in_root python3 -m venv /venv
in_root sh -c 'cd /project && /venv/bin/pip install -q -e . --group test --group newest'
in_root /venv/bin/python -c 'import sys, zarr; print(f"Python {sys.version.split()[0]}, zarr-python {zarr.__version__}")'
in_root sh -c 'cd /project && exec /venv/bin/python -m pytest -q -n auto --dist loadfile "$@"' pytest "$@"
