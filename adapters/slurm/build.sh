#!/bin/sh
# Writes OUT/run, which speaks the protocol for Debian's Slurm: build.sh OUT
set -eu
here=$(dirname "$0")
for tool in slurmctld salloc scancel scontrol; do
    if ! command -v "$tool" >/dev/null; then
        echo "skipped: needs $tool (Debian: slurmctld, slurm-client)" >&2
        exit 77
    fi
done
exec "$here/../common/python/install.sh" "$here" "$1"
