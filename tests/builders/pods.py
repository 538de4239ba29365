"""Pod manifests, as far as a resource manager reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def guaranteed_resources(amounts: Mapping[str, Any]) -> dict[str, Any]:
    """Resources with requests equal to limits."""
    return {"requests": dict(amounts), "limits": dict(amounts)}


class Sidecar(dict[str, Any]):
    """The resources of a sidecar."""


def container(name: str, resources: Mapping[str, Any], *, sidecar: bool = False) -> dict[str, Any]:
    """A container, or a sidecar."""
    made = {"name": name, "resources": dict(resources)}
    return made | ({"restartPolicy": "Always"} if sidecar else {})


def pod(
    uid: str,
    containers: Iterable[dict[str, Any]],
    init: Iterable[dict[str, Any]] = (),
    **spec: Any,
) -> dict[str, Any]:
    """A pod; `spec` adds to its specification, for example `resources`."""
    return {
        "metadata": {"uid": uid, "name": uid},
        "spec": {**spec, "initContainers": list(init), "containers": list(containers)},
    }


def numbered_pod(
    uid: str,
    apps: Iterable[Mapping[str, Any]],
    init: Iterable[Mapping[str, Any]] = (),
    **spec: Any,
) -> dict[str, Any]:
    """A pod with containers `app0`, `app1`, ... after init containers `init0`, `init1`, ..."""

    def row(prefix: str, resources: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [
            container(f"{prefix}{number}", one, sidecar=isinstance(one, Sidecar))
            for number, one in enumerate(resources)
        ]

    return pod(uid, row("app", apps), row("init", init), **spec)
