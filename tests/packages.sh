#!/usr/bin/env bash
# `make package`: build the wheels and source distributions, check them, and install them in clean environments.
#
# Two environments of the Python that runs this: the lowest versions of the dependencies that pyproject.toml allows, and the
# newest. In each, the library is used without and then with the cases of zarrlite-conformance. About one minute.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python
dist=$PWD/dist
rm -rf "$dist"
mkdir "$dist"
for folder in . spec_fixtures; do
  "$python" -m build --outdir "$dist" "$folder" >"$dist/log" 2>&1 || { cat "$dist/log" && exit 1; }
done
rm "$dist/log"
"$python" -m twine check --strict "$dist"/*
"$python" -m check_wheel_contents "$dist"/zarrlite-[0-9]*.whl
"$python" -m check_wheel_contents --ignore W010 "$dist"/zarrlite_conformance-*.whl # it has no modules on purpose
lowest=$("$python" - <<'PYTHON'
import re, tomllib
for dependency in tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]:
    print(re.sub(">=", "==", dependency))
PYTHON
)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for which in lowest newest; do
  "$python" -m venv "$which"
  echo "$([ $which = lowest ] && echo "$lowest")" >constraints.txt
  "$which/bin/pip" install -q --disable-pip-version-check -c constraints.txt "$dist"/zarrlite-[0-9]*.whl
  "$which/bin/pip" list --disable-pip-version-check --format freeze | grep -E 'numpy|crc32c|zstandard|^zarrlite' | xargs
  "$which/bin/zarrlite" demo >/dev/null
  "$which/bin/python" -m zarrlite --version
  status=0
  "$which/bin/zarrlite" conformance list >/dev/null 2>message || status=$?
  [ "$status" = 4 ] && grep -q 'pip install zarrlite-conformance' message
  "$which/bin/pip" install -q --disable-pip-version-check "$dist"/zarrlite_conformance-*.whl
  "$which/bin/zarrlite" conformance run --filter core/ | tail -n 3
done
