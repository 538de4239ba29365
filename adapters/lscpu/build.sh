#!/bin/sh
# Installs the adapter: build.sh OUT writes OUT/run.
set -eu
if ! command -v lscpu >/dev/null; then
    echo "skipped: needs lscpu (Debian: util-linux)" >&2
    exit 77
fi
here=$(dirname "$0")
exec "$here/../common/python/install.sh" "$here" "$1"
