#!/bin/sh
# Builds a whole kubelet from the module proxy: build.sh RELEASE OUT [flags of go build]
# NUMAPROOF_FORK=MODULE@VERSION takes Kubernetes and its staging modules from a fork, such as
# github.com/k3s-io/kubernetes@v1.34.1-k3s1; Go may need GONOSUMDB for it.
set -eu
if [ $# -lt 2 ]; then
    echo "usage: $0 RELEASE OUT [flags of go build]" >&2
    exit 2
fi
release=$1
out=$(realpath -m "$2")
shift 2
cd "$(dirname "$0")/.."
. ./release.sh
# A whole kubelet needs more modules than the adapter; Go adds them to a copy.
modules=$(mktemp -d)
trap 'rm -rf "$modules"' EXIT
cp "releases/$release.mod" "$modules/kubelet.mod"
cp "releases/$release.sum" "$modules/kubelet.sum"
own=
fork=${NUMAPROOF_FORK:-}
if [ -n "$fork" ]; then
    module=${fork%@*}
    own=${fork#*@}
    upstream=v0.$(echo "${own#v1.}" | sed 's/[^0-9.].*//')
    sed -i -e "s#^\t\(k8s.io/[a-z-]*\) => .*#\t\1 => $module/staging/src/\1 $own#" \
        -e "s#^\tk8s.io/cri-client => .*#\tk8s.io/cri-client => k8s.io/cri-client $upstream#" \
        "$modules/kubelet.mod"
    echo "replace k8s.io/kubernetes => $module $own" >>"$modules/kubelet.mod"
fi
version=$(sed -n 's|^\t*k8s.io/kubernetes \(v[0-9.]*\).*|\1|p' "$modules/kubelet.mod" | head -1)
version=${own:-$version}
minor=${release#*.}
package=k8s.io/component-base/version
go build -p 2 -mod=mod -modfile="$modules/kubelet.mod" -tags "$tags" \
    -ldflags "-X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=$minor" \
    -o "$out" "$@" ./binary
