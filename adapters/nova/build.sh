#!/bin/sh
# Installs Nova into OUT and writes OUT/run, which speaks the protocol: build.sh OUT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v python3 >/dev/null; then
    echo "skipped: needs python3" >&2
    exit 77
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
if ! python3 -m venv "$out/venv" >"$out/install.log" 2>&1; then
    echo "skipped: needs Python's venv (Debian: python3-venv)" >&2
    exit 77
fi
if ! "$out/venv/bin/pip" install --quiet --requirement "$here/requirements.txt" 2>"$out/install.log"; then
    echo "skipped: needs the packages of requirements.txt; $(tail -n 1 "$out/install.log")" >&2
    exit 77
fi
exec "$here/../common/python/install.sh" "$here" "$out" "$out/venv/bin/python"
