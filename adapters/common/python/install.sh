#!/bin/sh
# Installs an adapter in Python: install.sh FOLDER OUT [PYTHON] writes OUT/run for FOLDER/adapter.py.
set -eu
if ! command -v "${3:-python3}" >/dev/null; then
    echo "skipped: needs python3" >&2
    exit 77
fi
mkdir -p "$2"
out=$(cd "$2" && pwd)
cp "$1/adapter.py" "$(dirname "$0")"/*.py "$out"
printf '#!/bin/sh\nexec "%s" "%s/adapter.py"\n' "${3:-python3}" "$out" >"$out/run"
chmod +x "$out/run"
