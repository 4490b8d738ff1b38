#!/usr/bin/env bash
# Pins every package of the extras dev and docs, with digests, for Linux on x86-64 with Python 3.11. Names no index.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=$1
# uv reads settings of its own; where pip was told to look elsewhere, it looks there too.
[ -z "${PIP_FIND_LINKS:-}" ] || export UV_FIND_LINKS="$PIP_FIND_LINKS"
[ -z "${PIP_INDEX_URL:-}" ] || export UV_DEFAULT_INDEX="$PIP_INDEX_URL"
[ -z "${PIP_EXTRA_INDEX_URL:-}" ] || export UV_INDEX="$PIP_EXTRA_INDEX_URL"
"$uv" pip compile --quiet --generate-hashes --no-header --no-emit-index-url --no-emit-find-links \
  --python-version 3.11 --python-platform x86_64-unknown-linux-gnu \
  --extra dev --extra docs --constraint constraints.txt pyproject.toml --output-file requirements-dev.lock
{ echo "# Made by make lock from pyproject.toml and constraints.txt."; cat requirements-dev.lock; } >requirements-dev.lock.new
mv requirements-dev.lock.new requirements-dev.lock
