#!/bin/sh
# build.sh OUT: puts the adapter into the folder OUT, as OUT/run.
set -eu
if [ ! -x /usr/bin/lstopo-no-graphics ]; then
    echo "skipped: needs lstopo-no-graphics of Debian's package hwloc-nox" >&2
    exit 77
fi
here=$(dirname "$0")
exec "$here/../common/python/install.sh" "$here" "$1"
