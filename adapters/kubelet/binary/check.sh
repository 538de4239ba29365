#!/bin/sh
# Builds a whole kubelet and checks it: check.sh FOLDER [options of numaproof check]. The release is
# $NUMAPROOF_KUBELET (default: the newest).
set -eu
folder=$1
shift
here=$(dirname "$0")
if ! command -v go >/dev/null; then
    echo "skipped: building a kubelet needs Go"
    exit 0
fi
if ! unshare --mount --pid --net --fork true 2>/dev/null; then
    echo "skipped: this machine permits no namespaces"
    exit 0
fi
release=${NUMAPROOF_KUBELET:-$(cd "$here/../releases" && ls -- *.mod | sort -V | tail -1)}
release=${release%.mod}
"$here/build.sh" "$release" "$folder/kubelet"
numaproof doctor --kubelet "$folder/kubelet"
tests=$here/../../../tests/kubelet
NUMAPROOF_KUBELET_BINARY="$folder/kubelet" pytest "$tests/test_driver.py" "$tests/test_commands.py"
exec numaproof check --kubelet "$folder/kubelet" --out "$folder/report" "$@"
