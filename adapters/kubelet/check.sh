#!/bin/sh
# Builds the adapter for one Kubernetes release, runs the whole suite on it, and compares the scenarios
# of some seeds with the reference: check.sh FOLDER [options of numaproof check]. The release is
# $NUMAPROOF_KUBELET (default: the newest).
set -eu
folder=$1
shift
here=$(dirname "$0")
if ! command -v go >/dev/null; then
    echo "skipped: building the kubelet adapter needs Go"
    exit 0
fi
release=${NUMAPROOF_KUBELET:-$(cd "$here/releases" && ls -- *.mod | sort -V | tail -1)}
release=${release%.mod}
"$here/build.sh" "$release" "$folder/kubelet"
# The second command runs even if the first fails.
status=0
numaproof check --implementation "$folder/kubelet -v=-1" --kubernetes "$release" \
    --out "$folder/report" "$@" || status=$?
numaproof diff --right "$folder/kubelet -v=-1" --kubernetes "$release" --seeds 0:100 \
    --out "$folder/differences" || status=$?
exit $status
