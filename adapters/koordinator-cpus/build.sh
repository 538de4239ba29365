#!/bin/sh
# Builds the adapter: build.sh OUT writes OUT/run.
# Koordinator does not export its CPU accumulator. Its two files are read from Go's module cache
# and compiled as part of nodenumaresource/, which has a file of our own.
set -eu
if ! command -v go >/dev/null; then
    echo "skipped: needs Go" >&2
    exit 77
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
go mod download github.com/koordinator-sh/koordinator
module=$(go list -m -f '{{.Dir}}' github.com/koordinator-sh/koordinator)
plugin=$module/pkg/scheduler/plugins/nodenumaresource
here=$(pwd)/nodenumaresource
cat >"$out/overlay.json" <<EOF
{"Replace": {
  "$here/cpu_accumulator.go": "$plugin/cpu_accumulator.go",
  "$here/cpu_topology.go": "$plugin/cpu_topology.go"
}}
EOF
exec go build -p 1 -overlay "$out/overlay.json" -o "$out/run" .
