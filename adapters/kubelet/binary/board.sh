#!/bin/sh
# Checks kubelets and makes a board of them: board.sh FOLDER [options of numaproof check]
# Every program in FOLDER/kubelets is checked, with --quick unless there are other options. Reports
# are in FOLDER/reports, the board in FOLDER/site. Kubelets that can't be checked are named.
set -eu
if [ $# -lt 1 ]; then
    echo "usage: $0 FOLDER [options of numaproof check]" >&2
    exit 2
fi
folder=$1
shift
[ $# -gt 0 ] || set -- --quick
status=0
for kubelet in "$folder"/kubelets/*; do
    echo "$kubelet"
    # A kubelet that fails is on the board, too.
    code=0
    numaproof check --kubelet "$kubelet" --out "$folder/reports/${kubelet##*/}" "$@" || code=$?
    [ "$code" -le "$status" ] || status=$code
done
numaproof board "$folder/reports" --out "$folder/site"
exit "$status"
