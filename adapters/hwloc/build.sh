#!/bin/sh
# Installs the adapter: build.sh OUT writes OUT/run.
set -eu
if ! command -v lstopo-no-graphics >/dev/null; then
    echo "skipped: needs lstopo-no-graphics (Debian: hwloc-nox)" >&2
    exit 77
fi
here=$(dirname "$0")
exec "$here/../common/python/install.sh" "$here" "$1"
