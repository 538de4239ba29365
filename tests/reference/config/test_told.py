"""What answers say on request: CFS quota, the configuration in force, the fate of refused pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from builders import machines
from numaproof.protocol import messages
from numaproof.reference.golang import durations
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = machines.regular(1, 4, 2)
WHOLE = {"limits": {"cpu": "1", "memory": "64Mi"}}
HALF = {"limits": {"cpu": "500m", "memory": "64Mi"}}


def pod(resources: dict[str, Any] | None = None, **containers: dict[str, Any]) -> messages.Pod:
    spec: dict[str, Any] = {
        "containers": [{"name": name, "resources": one} for name, one in containers.items()]
    }
    if resources:
        spec["resources"] = resources
    return {"metadata": {"name": "a", "uid": "uid-a"}, "spec": spec}


def start(
    folder: Path, kubernetes: str = "1.37", **changes: Any
) -> tuple[Reference, messages.Answer]:
    config = {"cpuManagerPolicy": "static", "kubeReserved": {"cpu": "1"}} | changes
    reference = Reference()
    args = messages.StartArgs(config, str(folder), kubernetes, MACHINE, tell=messages.TOLD)
    return reference, reference.call("start", args)


def quotas(reference: Reference, manifest: messages.Pod) -> dict[str, bool | None]:
    answer = reference.call("admit", messages.AdmitArgs(manifest))
    assert isinstance(answer, messages.Admitted), answer
    return {name: container.quota for name, container in answer.containers.items()}


def test_only_containers_with_cpus_of_their_own_are_spared_in_a_pod_with_a_budget(
    tmp_path: Path,
) -> None:
    gates = {"PodLevelResourceManagers": True}
    scope = {"topologyManagerScope": "pod", "topologyManagerPolicy": "restricted"}
    reference, started = start(tmp_path, featureGates=gates, **scope)
    assert isinstance(started, messages.Started), started
    own = {"limits": {"cpu": "3", "memory": "1Gi"}, "requests": {"cpu": "3", "memory": "1Gi"}}
    assert quotas(reference, pod(own, app=WHOLE, log=HALF)) == {"app": False, "log": True}


def test_a_refused_pod_is_failed(tmp_path: Path) -> None:
    reference, _ = start(tmp_path)
    many = {"limits": {"cpu": "999", "memory": "64Mi"}}
    refused = reference.call("admit", messages.AdmitArgs(pod(app=many)))
    assert isinstance(refused, messages.AdmissionRefused)
    assert refused.pod == messages.RefusedPod(
        "Failed", refused.reason, f"Pod was rejected: {refused.message}", refused.message
    )


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (3_002, "3.002µs"),
        (20_000_000, "20ms"),
        (1_500_000_000, "1.5s"),
        (90 * 10**9, "1m30s"),
        (3600 * 10**9 + 1_500_000, "1h0m0.0015s"),
        (-(10**9), "-1s"),
    ],
)
def test_durations_are_written_as_go_does(nanoseconds: int, text: str) -> None:
    assert durations.shown(nanoseconds) == text
    assert durations.nanoseconds(text) == nanoseconds
