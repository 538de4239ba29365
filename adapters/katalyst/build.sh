#!/bin/sh
# Builds the adapter into a folder: build.sh OUT makes OUT/run.
here=$(dirname "$0")
exec "$here/../common/go/build.sh" "$here" "$1"
