#!/bin/sh
# Builds the adapter for one Kubernetes release: build.sh RELEASE OUT [flags of go build]
# Sets the build tag since_X_Y for every release up to this one, and until_X_Y for this one and later.
set -eu
if [ $# -lt 2 ]; then
    echo "usage: $0 RELEASE OUT [flags of go build]" >&2
    exit 2
fi
release=$1
out=$(realpath -m "$2")
shift 2
cd "$(dirname "$0")"
if [ ! -f "releases/$release.mod" ]; then
    echo "$0: no releases/$release.mod; choose one of: $(cd releases && echo *.mod)" >&2
    exit 2
fi
tags=
bound=since
for name in $(cd releases && ls -- *.mod | sort -V); do
    minor=$(basename "$name" .mod | tr . _)
    if [ "$name" = "$release.mod" ]; then
        tags="$tags since_$minor"
        bound=until
    fi
    tags="$tags ${bound}_$minor"
done
exec go build -p 2 -modfile="releases/$release.mod" -tags "$tags" -o "$out" "$@" .
