#!/bin/sh
# Installs Nova into OUT and writes OUT/run, which speaks the protocol: build.sh OUT
set -eu
out=$(realpath -m "$1")
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v python3 >/dev/null; then
    echo "skipped: needs python3" >&2
    exit 77
fi
mkdir -p "$out"
python3 -m venv "$out/venv"
"$out/venv/bin/pip" install --quiet --requirement "$here/requirements.txt"
exec "$here/../common/python/install.sh" "$here" "$out" "$out/venv/bin/python"
