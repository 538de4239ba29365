#!/bin/sh
# Builds the adapter into a folder: build.sh OUT makes OUT/run.
set -eu
if ! command -v go >/dev/null; then
    echo "skipped: needs Go" >&2
    exit 77
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
exec go build -p 1 -o "$out/run" .
