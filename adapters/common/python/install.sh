#!/bin/sh
# Installs an adapter in Python: install.sh FOLDER OUT [PYTHON] makes OUT/run of FOLDER/adapter.py.
set -eu
mkdir -p "$2"
out=$(cd "$2" && pwd)
cp "$1/adapter.py" "$(dirname "$0")"/*.py "$out"
printf '#!/bin/sh\nexec "%s" "%s/adapter.py"\n' "${3:-python3}" "$out" >"$out/run"
chmod +x "$out/run"
