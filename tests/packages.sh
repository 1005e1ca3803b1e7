#!/usr/bin/env bash
# `make package`: build the wheels and source distributions, check them, and install them in clean environments.
#
#   tests/packages.sh                      all of it, with the Python of .venv; about one minute
#   tests/packages.sh --install PYTHON...  only install the packages in `dist`, with this command
#
# Three environments: the wheels with the lowest versions of the dependencies that pyproject.toml allows, the wheels with
# the newest versions, and the source distributions with the newest ones. Where this Python has no wheel of the lowest
# version of a dependency, the lowest one that has a wheel is taken. In each environment, the library is used without and
# then with the cases of zarrlite-conformance.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
dist=$PWD/dist
python=("$PWD/.venv/bin/python")

if [ "${1:-}" = --install ]; then
  python=("${@:2}")
else
  rm -rf "$dist"
  mkdir "$dist"
  for folder in . spec_fixtures; do
    "${python[@]}" -m build --outdir "$dist" "$folder" >"$dist/log" 2>&1 || { cat "$dist/log" && exit 1; }
  done
  rm "$dist/log"
  "${python[@]}" -m twine check --strict "$dist"/*
  "${python[@]}" -m check_wheel_contents "$dist"/zarrlite-[0-9]*.whl
  "${python[@]}" -m check_wheel_contents --ignore W010 "$dist"/zarrlite_conformance-*.whl # it has no modules on purpose
fi

lowest() { # lowest PYTHON: constraints for pip, one line for each dependency
  "$1" - "$root/pyproject.toml" <<'PYTHON'
import re, subprocess, sys, tomllib

def number(version):
    return [int(part) for part in re.findall(r"\d+", version)]

for dependency in tomllib.load(open(sys.argv[1], "rb"))["project"]["dependencies"]:
    name, minimum = dependency.split(">=")
    command = [sys.executable, "-m", "pip", "index", "versions", name, "--only-binary", ":all:"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    versions = re.search("Available versions: (.*)", listed)[1].split(", ")
    print(f"{name}=={min((v for v in versions if number(v) >= number(minimum)), key=number)}")
PYTHON
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export PIP_DISABLE_PIP_VERSION_CHECK=1
for which in lowest newest sdist; do
  "${python[@]}" -m venv "$which"
  suffix=$([ $which = sdist ] && echo .tar.gz || echo .whl)
  echo >constraints.txt
  if [ $which = lowest ]; then lowest "$which/bin/python" >constraints.txt; fi
  "$which/bin/pip" install -q -c constraints.txt "$dist"/zarrlite-[0-9]*"$suffix"
  echo "$which: $("$which/bin/python" --version)" \
    "$("$which/bin/pip" list --format freeze | grep -E 'numpy|crc32c|zstandard|^zarrlite' | xargs)"
  "$which/bin/zarrlite" demo >/dev/null
  "$which/bin/python" -m zarrlite --version
  status=0
  "$which/bin/zarrlite" conformance list >/dev/null 2>message || status=$?
  [ "$status" = 4 ] && grep -q 'pip install zarrlite-conformance' message
  "$which/bin/pip" install -q "$dist"/zarrlite_conformance-*"$suffix"
  "$which/bin/zarrlite" conformance run --filter core/ | tail -n 3
done
