#!/bin/sh
# Builds the adapter for one Kubernetes release: build.sh RELEASE OUT [flags of go build]
set -eu
if [ $# -lt 2 ]; then
    echo "usage: $0 RELEASE OUT [flags of go build]" >&2
    exit 2
fi
release=$1
out=$(realpath -m "$2")
shift 2
cd "$(dirname "$0")"
. ./release.sh
exec go build -p 2 -modfile="releases/$release.mod" -tags "$tags" -o "$out" "$@" .
