#!/bin/sh
# Writes OUT/run, which speaks the protocol for Debian's Slurm: build.sh OUT
set -eu
out=$(realpath -m "$1")
here=$(cd "$(dirname "$0")" && pwd)
for tool in python3 slurmctld salloc scancel scontrol; do
    if ! command -v "$tool" >/dev/null; then
        echo "skipped: needs $tool (Debian: slurmctld, slurm-client)" >&2
        exit 77
    fi
done
mkdir -p "$out"
cp "$here/adapter.py" "$here/../common/python/"*.py "$out"
printf '#!/bin/sh\nexec python3 "%s/adapter.py"\n' "$out" >"$out/run"
chmod +x "$out/run"
