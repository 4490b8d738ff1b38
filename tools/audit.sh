#!/usr/bin/env bash
# Asks the public advisory database about every pinned version of the lock, and sends it nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
plain=$(mktemp)
trap 'rm -f "$plain"' EXIT
# The database knows versions without the mark of a build, and digests play no part in the question.
sed -nE 's/^([A-Za-z0-9._-]+==[^+ ]+)(\+[a-z0-9]+)?( ;[^\\]*)? \\$/\1/p' requirements-dev.lock >"$plain"
# Strict, because a package that nothing could be learned about is no package without faults.
"$1" --strict --no-deps --disable-pip --requirement "$plain"
