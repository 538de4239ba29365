#!/bin/sh
# Builds the adapter: build.sh OUT writes OUT/run.
here=$(dirname "$0")
exec "$here/../common/go/build.sh" "$here" "$1"
