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
cp "$here/adapter.py" "$here/../common/python/"*.py "$out"
printf '#!/bin/sh\nexec "%s/venv/bin/python" "%s/adapter.py"\n' "$out" "$out" >"$out/run"
chmod +x "$out/run"
