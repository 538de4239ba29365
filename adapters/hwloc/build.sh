#!/bin/sh
# build.sh OUT: puts the adapter into the folder OUT, as OUT/run.
set -eu
if [ ! -x /usr/bin/lstopo-no-graphics ]; then
    echo "skipped: needs lstopo-no-graphics of Debian's package hwloc-nox" >&2
    exit 77
fi
here=$(dirname "$0")
mkdir -p "$1"
cp "$here/adapter.py" "$here/../common/python/protocol.py" "$here/../common/python/machine.py" "$1/"
printf '#!/bin/sh\nexec python3 "$(dirname "$0")/adapter.py"\n' > "$1/run"
chmod +x "$1/run"
