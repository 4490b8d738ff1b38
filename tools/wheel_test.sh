#!/usr/bin/env bash
# Installs the wheel in dist/ into an empty environment, away from the source, and runs the demo there.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
wheel=$(echo "$PWD"/dist/*.whl)
size=$(stat -c %s "$wheel")
[ "$size" -lt 8000000 ] || { echo "$wheel has $size bytes; the limit is 8,000,000" >&2; exit 1; }
empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
"$python" -m venv "$empty/venv"
"$empty/venv/bin/python" -m pip install --quiet --no-compile --constraint constraints.txt "$wheel"
cd "$empty"
env -u PYTHONPATH ./venv/bin/leapts demo --out demo --max-steps 30
for made in model/config.json model/model.safetensors forecast.csv trace.csv report.html; do
  [ -s "demo/$made" ] || { echo "the demo did not write $made" >&2; exit 1; }
done
echo "the wheel of $size bytes installs and runs"
