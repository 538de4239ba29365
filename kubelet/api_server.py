"""An API server with as much of Kubernetes' REST interface as a kubelet uses.

Objects of any kind are stored by their path; lists, watches (also those that begin with the
existing objects), patches and deletions work alike for all of them.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import re
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Object = dict[str, Any]
Change = tuple[str, Object]
"""``ADDED``, ``MODIFIED`` or ``DELETED``, and the object."""

_PATH = re.compile(
    r"/(?P<version>api/v1|apis/[^/]+/[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>.+))?)?"
)
_KINDS = {
    "nodes": "Node",
    "pods": "Pod",
    "leases": "Lease",
    "events": "Event",
    "services": "Service",
    "csinodes": "CSINode",
    "csidrivers": "CSIDriver",
    "runtimeclasses": "RuntimeClass",
    "configmaps": "ConfigMap",
    "secrets": "Secret",
}
PLENTY = "1Ei"
"""More than any pod requests."""

DISKS = {"ephemeral-storage": PLENTY}
"""Room for any pod on the disks, which no machine describes."""

ROOM = {
    **DISKS,
    "cpu": "1000000",
    "memory": PLENTY,
    "pods": "1000000",
    **dict.fromkeys(("hugepages-2Mi", "hugepages-1Gi", "hugepages-64Ki", "hugepages-32Mi"), PLENTY),
}
"""Room for any pod.

A kubelet rejects pods that the scheduler would not have sent to the node. What its resource
managers make of them is seen only if the node has room.
"""
_INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}
_MERGE_KEYS = {
    "conditions": "type",
    "addresses": "type",
    "podIPs": "ip",
    "hostIPs": "ip",
    "containers": "name",
    "taints": "key",
    "ownerReferences": "uid",
}
"""By field: what identifies an item in a strategic merge patch; other lists are replaced."""


@dataclass
class Store:
    """The objects of a cluster; `on_change` is called with each change."""

    on_change: Callable[[str, Change], None] = lambda _plural, _change: None
    _objects: dict[tuple[str, str, str], Object] = field(default_factory=dict)
    _versions: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _version: int = 0
    _history: list[tuple[int, str, Change]] = field(default_factory=list)
    _watches: list[tuple[str, asyncio.Queue[Change]]] = field(default_factory=list)

    def get(self, plural: str, namespace: str, name: str) -> Object | None:
        """An object; None if there is none of that name."""
        return self._objects.get((plural, namespace, name))

    def list(self, plural: str, namespace: str = "") -> list[Object]:
        """The objects of a kind, of one namespace or of all."""
        return [
            one
            for (kind, place, _), one in self._objects.items()
            if kind == plural and (not namespace or place == namespace)
        ]

    def put(self, plural: str, value: Object) -> Object:
        """Creates or replaces an object."""
        metadata = value["metadata"]
        key = (plural, metadata.get("namespace", ""), metadata["name"])
        old = self._objects.get(key)
        kept = old["metadata"] if old else {}
        metadata.setdefault("uid", kept.get("uid", str(uuid.uuid4())))
        metadata.setdefault("creationTimestamp", kept.get("creationTimestamp", _now()))
        metadata["resourceVersion"] = self._next()
        self._objects[key] = value
        self._tell(plural, ("MODIFIED" if old else "ADDED", value))
        return value

    def clear(self) -> None:
        """Removes all objects without a word to those who watch."""
        self._objects.clear()
        self._history.clear()

    def delete(self, plural: str, namespace: str, name: str) -> Object | None:
        """Removes an object."""
        value = self._objects.pop((plural, namespace, name), None)
        if value is not None:
            value["metadata"]["resourceVersion"] = self._next()
            self._tell(plural, ("DELETED", value))
        return value

    @property
    def version(self) -> str:
        """The resource version of the last change."""
        return str(self._version)

    def watch(self, plural: str, since: int | None = None) -> asyncio.Queue[Change]:
        """The changes of a kind, from now on or since a resource version."""
        queue: asyncio.Queue[Change] = asyncio.Queue()
        for version, kind, change in self._history:
            if since is not None and version > since and kind == plural:
                queue.put_nowait(change)
        self._watches.append((plural, queue))
        return queue

    def unwatch(self, queue: asyncio.Queue[Change]) -> None:
        """Ends what `watch` began."""
        self._watches = [one for one in self._watches if one[1] is not queue]

    def _next(self) -> str:
        self._version = next(self._versions)
        return str(self._version)

    def _tell(self, plural: str, change: Change) -> None:
        kept = (change[0], copy.deepcopy(change[1]))
        self._history.append((self._version, plural, kept))
        for kind, queue in self._watches:
            if kind == plural:
                queue.put_nowait(kept)
        self.on_change(plural, change)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def merge(value: Any, patch: Any, *, key: str = "") -> Any:
    """The value after a strategic merge patch, as far as a kubelet's patches go."""
    if isinstance(patch, dict) and isinstance(value, dict):
        made = dict(value)
        for name, change in patch.items():
            if name.startswith("$"):
                continue
            if change is None:
                made.pop(name, None)
            else:
                made[name] = merge(made.get(name), change, key=name)
        return made
    identity = _MERGE_KEYS.get(key)
    if isinstance(patch, list) and isinstance(value, list) and identity:
        by_id = {one.get(identity): one for one in value}
        for one in patch:
            if one.get("$patch") == "delete":
                by_id.pop(one.get(identity), None)
            else:
                by_id[one.get(identity)] = merge(by_id.get(one.get(identity), {}), one)
        return list(by_id.values())
    return _without_directives(patch)


def _without_directives(patch: Any) -> Any:
    if isinstance(patch, dict):
        return {
            name: _without_directives(one)
            for name, one in patch.items()
            if one is not None and not name.startswith("$")
        }
    if not isinstance(patch, list):
        return patch
    return [
        _without_directives(one)
        for one in patch
        if not (isinstance(one, dict) and one.get("$patch") == "delete")
    ]


class ApiServer:
    """Serves a store over HTTP on the loopback interface.

    Attributes:
        room: allocatable resources that nodes have whatever they report.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.port = 0
        self.room: Object = ROOM
        self._runner: web.AppRunner | None = None
        self._gates: dict[str, asyncio.Event] = {}

    async def start(self) -> None:
        """Starts serving on a free port."""
        application = web.Application()
        application.router.add_route("*", "/{tail:.*}", self._answer)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]

    def hold(self, plural: str) -> asyncio.Event:
        """Holds back the answers to lists and watches of a kind until the event is set."""
        self._gates[plural] = asyncio.Event()
        return self._gates[plural]

    def make_room(self, resources: Iterable[str]) -> None:
        """Gives nodes room for resources of device plugins.

        A pod that came before the plugin of a device has none, but a kubelet counts it.
        """
        missing = {*resources} - self.room.keys()
        if missing:
            self.room = {**self.room, **dict.fromkeys(missing, PLENTY)}
            for node in self.store.list("nodes"):
                self.store.put("nodes", node)

    async def stop(self) -> None:
        """Stops serving."""
        if self._runner:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        match = _PATH.fullmatch(request.path)
        if match is None:
            return _failure(404, "NotFound", request.path)
        at = {name: value or "" for name, value in match.groupdict().items()}
        if request.method == "GET" and not at["name"]:
            if at["plural"] in self._gates:
                await self._gates[at["plural"]].wait()
            if request.query.get("watch") in ("true", "1"):
                return await self._watch(request, at)
            return self._list(request, at)
        if request.method == "POST":
            return self._create(json.loads(await request.read()), at)
        return self._of_object(request.method, await request.read(), at)

    def _of_object(self, method: str, content: bytes, at: dict[str, str]) -> web.Response:
        """Answers a request for one object: to read, delete, patch or replace it."""
        place = (at["plural"], at["namespace"], at["name"])
        old = self.store.get(*place)
        if old is None:
            return _failure(404, "NotFound", at["name"])
        if method == "GET":
            return self._object(old, at)
        if method == "DELETE":
            self.store.delete(*place)
            return self._object(old, at)
        body = json.loads(content)
        new = merge(copy.deepcopy(old), body) if method == "PATCH" else body
        return self._object(self.store.put(at["plural"], new), at)

    def _create(self, body: Object, at: dict[str, str]) -> web.Response:
        if at["sub"] == "token":
            expires = "2099-01-01T00:00:00Z"
            return web.json_response(
                body | {"status": {"token": "token", "expirationTimestamp": expires}}, status=201
            )
        if at["plural"] in ("tokenreviews", "subjectaccessreviews"):
            answer = {"authenticated": True, "allowed": True, "user": {"username": "numaproof"}}
            return web.json_response(body | {"status": answer}, status=201)
        metadata = body.setdefault("metadata", {})
        # A mirror pod comes with the uid of its static pod, but gets its own.
        metadata.pop("uid", None)
        if "name" not in metadata:
            metadata["name"] = metadata.get("generateName", "object-") + uuid.uuid4().hex[:8]
        if at["namespace"]:
            metadata.setdefault("namespace", at["namespace"])
        if self.store.get(at["plural"], at["namespace"], metadata["name"]):
            return _failure(409, "AlreadyExists", metadata["name"])
        return self._object(self.store.put(at["plural"], body), at, status=201)

    def _list(self, request: web.Request, at: dict[str, str]) -> web.Response:
        items = [
            one
            for one in self.store.list(at["plural"], at["namespace"])
            if _matches(one, request.query.get("fieldSelector", ""))
        ]
        kind = _KINDS.get(at["plural"], at["plural"].title())
        return web.json_response(
            {
                "kind": f"{kind}List",
                "apiVersion": _version(at),
                "metadata": {"resourceVersion": self.store.version},
                "items": [self._typed(one, at) for one in items],
            }
        )

    async def _watch(self, request: web.Request, at: dict[str, str]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        selector = request.query.get("fieldSelector", "")
        version = request.query.get("resourceVersion", "")
        from_now = request.query.get("sendInitialEvents") == "true" or not version
        existing = self.store.list(at["plural"], at["namespace"]) if from_now else []
        changes = self.store.watch(at["plural"], None if from_now else int(version))
        await response.prepare(request)
        for one in existing:
            if _matches(one, selector):
                await response.write(self._event("ADDED", one, at))
        if request.query.get("sendInitialEvents") == "true":
            mark = {
                "metadata": {
                    "resourceVersion": self.store.version,
                    "annotations": _INITIAL_EVENTS_END,
                }
            }
            await response.write(self._event("BOOKMARK", mark, at))
        with suppress(ConnectionError):
            while True:
                kind, one = await changes.get()
                own = at["namespace"] in ("", one["metadata"].get("namespace"))
                if own and _matches(one, selector):
                    await response.write(self._event(kind, one, at))
        self.store.unwatch(changes)
        return response

    def _typed(self, value: Object, at: dict[str, str]) -> Object:
        kind = _KINDS.get(at["plural"], at["plural"].title())
        if at["plural"] == "nodes":
            status = value.get("status", {})
            allocatable = status.get("allocatable", {}) | self.room
            value = value | {"status": status | {"allocatable": allocatable}}
        return {"kind": kind, "apiVersion": _version(at)} | value

    def _event(self, kind: str, value: Object, at: dict[str, str]) -> bytes:
        return json.dumps({"type": kind, "object": self._typed(value, at)}).encode() + b"\n"

    def _object(self, value: Object, at: dict[str, str], status: int = 200) -> web.Response:
        return web.json_response(self._typed(value, at), status=status)


def _version(at: dict[str, str]) -> str:
    return at["version"].removeprefix("apis/").removeprefix("api/")


def _matches(candidate: Object, selector: str) -> bool:
    """Whether a field selector such as ``spec.nodeName=x`` selects an object."""
    for term in filter(None, selector.split(",")):
        path, _, wanted = term.replace("==", "=").partition("=")
        negated = path.endswith("!")
        value: Any = candidate
        for name in path.rstrip("!").split("."):
            value = value.get(name, "") if isinstance(value, dict) else ""
        if (str(value) == wanted) is negated:
            return False
    return True


def _failure(code: int, reason: str, what: str) -> web.Response:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": f"{what}: {reason}",
        "code": code,
    }
    return web.json_response(body, status=code)
