#!/bin/sh
# Builds an adapter in Go: build.sh FOLDER OUT compiles FOLDER to OUT/run.
set -eu
if ! command -v go >/dev/null; then
    echo "skipped: needs Go" >&2
    exit 77
fi
mkdir -p "$2"
out=$(cd "$2" && pwd)
cd "$1"
exec go build -p 1 -o "$out/run" .
