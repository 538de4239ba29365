"""What can be asked of a whole kubelet process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.conformance.claims.needs import POLICY_FIELDS
from numaproof.protocol import messages
from numaproof.reference.deviations.releases import release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.kubelet.binary import Kubelet

_FEATURES = (
    *("init-containers", "sidecars", "restart", "reconfiguration", "configuration-validation"),
    *("feature-gates", "pod-level-resources", "pod-level-resource-managers", "huge-pages"),
    *("checkpoint-files", "quota", "refused-pods", "flags", "preferred-devices"),
    *("effective-configuration", "running-restart", "failing-plugins", "metrics"),
    *("node-allocatable", "static-pods"),
)


def hello(kubelet: Kubelet, build: Mapping[str, str]) -> messages.Hello:
    """The claims of a kubelet.

    Operations of a single manager (`assign`, `hints`, `merge`) can't be asked of a process. A
    kubelet frees the resources of a pod, never those of one of its containers. A vendor's build is
    an implementation of its own, so that a board shows it next to Kubernetes' own. `build` is what
    identifies the binary.
    """
    known = release(kubelet.release)
    policies = {field.manager: field.policies for field in POLICY_FIELDS.values()}
    return messages.Hello(
        protocol=messages.PROTOCOL_VERSION,
        name="-".join(filter(None, ("kubelet-binary", kubelet.vendor))),
        version=kubelet.version,
        language="Go",
        kubernetes=(kubelet.release,),
        level="kubelet",
        operations=(
            *("start", "admit", "remove", "end", "devices", "state", "reconcile", "discover"),
            *(("resize",) if known.resizes_pods else ()),
        ),
        policies=messages.Policies(**policies),
        options=messages.Options(
            cpu=tuple(known.cpu_options), topology=tuple(known.topology_options)
        ),
        features=_FEATURES,
        build={**build, **({} if kubelet.has_own_release else {"checked as": kubelet.release})},
    )
