"""The API server answers a kubelet's requests as Kubernetes does."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from numaproof.kubelet.api_server import ApiServer, Store, merge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from numaproof.kubelet.api_server import Object

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def pod(name: str, node: str = "node", namespace: str = "default") -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"nodeName": node}}


class Client:
    """A client of a server; `server` and its `store` are for what a kubelet can't do."""

    def __init__(self, server: ApiServer, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.store = server.store
        self._session = session

    async def ask(
        self, method: str, path: str, body: Any = None, **query: str
    ) -> tuple[int, Object]:
        """The status and the content of the answer to a request."""
        async with self._session.request(method, path, json=body, params=query) as response:
            return response.status, await response.json()

    async def names(self, path: str, **query: str) -> list[str]:
        """The names of the objects in a list."""
        _, answer = await self.ask("GET", path, **query)
        return [one["metadata"]["name"] for one in answer["items"]]

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncIterator[Watch]:
        """A watch, with its events from the beginning."""
        async with self._session.get(path, params={"watch": "true", **query}) as response:
            yield Watch(response)


class Watch:
    """The events of a watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> tuple[str, Object]:
        """The kind of the next event, and the object."""
        event = json.loads(await self._response.content.readline())
        return event["type"], event["object"]

    async def next_names(self, count: int) -> list[tuple[str, str]]:
        """The kinds of the next events, and the objects' names."""
        events = [await self.next() for _ in range(count)]
        return [(kind, one["metadata"].get("name", "")) for kind, one in events]


@asynccontextmanager
async def serving() -> AsyncIterator[Client]:
    """A client of a server with an empty store."""
    server = ApiServer(Store())
    await server.start()
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as session:
            yield Client(server, session)
    finally:
        await server.stop()


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", ["a", "b", "c"]),
        ("spec.nodeName=node", ["a", "c"]),
        ("spec.nodeName==node", ["a", "c"]),
        ("spec.nodeName!=node", ["b"]),
        ("metadata.name=a,spec.nodeName=node", ["a"]),
        ("metadata.name=b,spec.nodeName=node", []),
        ("spec.no.such=x", []),
        ("spec.nodeName.deeper=", ["a", "b", "c"]),
    ],
)
async def test_a_list_has_what_a_field_selector_selects(selector: str, expected: list[str]) -> None:
    async with serving() as client:
        for one in (pod("a"), pod("b", "other"), pod("c", namespace="elsewhere")):
            client.store.put("pods", one)
        assert await client.names("/api/v1/pods", fieldSelector=selector) == expected


async def test_a_list_has_kinds_and_a_version() -> None:
    async with serving() as client:
        client.store.put("pods", pod("a"))
        client.store.put("pods", pod("b", namespace="elsewhere"))
        status, answer = await client.ask("GET", PODS)
        assert status == 200
        assert (answer["kind"], answer["apiVersion"]) == ("PodList", "v1")
        assert answer["metadata"]["resourceVersion"] == client.store.version == "2"
        (only,) = answer["items"]
        assert (only["kind"], only["metadata"]["name"]) == ("Pod", "a")
        _, answer = await client.ask("GET", LEASES)
        assert (answer["kind"], answer["apiVersion"]) == ("LeaseList", "coordination.k8s.io/v1")


async def test_a_watch_tells_what_happens_to_objects() -> None:
    async with serving() as client:
        client.store.put("pods", pod("before"))
        async with client.watch("/api/v1/pods", fieldSelector="spec.nodeName=node") as watch:
            assert await watch.next_names(1) == [("ADDED", "before")]
            client.store.put("pods", pod("a"))
            client.store.put("pods", pod("b", "other"))
            client.store.put("nodes", {"metadata": {"name": "node"}})
            client.store.put("pods", pod("a") | {"status": {"phase": "Running"}})
            client.store.delete("pods", "default", "a")
            kinds = [await watch.next() for _ in range(3)]
        assert [kind for kind, _ in kinds] == ["ADDED", "MODIFIED", "DELETED"]
        assert all(one["metadata"]["name"] == "a" for _, one in kinds)
        assert all(one["kind"] == "Pod" for _, one in kinds)
        versions = [int(one["metadata"]["resourceVersion"]) for _, one in kinds]
        assert versions == sorted(set(versions))
        assert len({one["metadata"]["uid"] for _, one in kinds}) == 1


async def test_a_watch_from_a_version_has_only_later_changes_of_its_namespace() -> None:
    async with serving() as client:
        client.store.put("pods", pod("before"))
        async with client.watch(PODS, resourceVersion="1") as watch:
            client.store.put("pods", pod("elsewhere", namespace="elsewhere"))
            client.store.put("pods", pod("after"))
            assert await watch.next_names(1) == [("ADDED", "after")]


async def test_a_mark_follows_the_initial_events_that_were_requested() -> None:
    async with serving() as client:
        for name in ("a", "b"):
            client.store.put("pods", pod(name))
        query = {"sendInitialEvents": "true", "resourceVersion": "1", "allowWatchBookmarks": "true"}
        async with client.watch("/api/v1/pods", **query) as watch:
            assert await watch.next_names(2) == [("ADDED", "a"), ("ADDED", "b")]
            kind, mark = await watch.next()
            assert kind == "BOOKMARK"
            assert mark["kind"] == "Pod"
            assert mark["metadata"]["resourceVersion"] == "2"
            assert mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
            client.store.put("pods", pod("c"))
            assert await watch.next_names(1) == [("ADDED", "c")]


async def test_a_watch_has_what_changed_since_the_list() -> None:
    async with serving() as client:
        client.store.put("pods", pod("before"))
        version = client.store.version
        client.store.put("pods", pod("meanwhile"))
        async with client.watch("/api/v1/pods", resourceVersion=version) as watch:
            client.store.put("pods", pod("later"))
            assert await watch.next_names(2) == [("ADDED", "meanwhile"), ("ADDED", "later")]


async def test_a_watch_ends_when_its_client_has_gone() -> None:
    async with serving() as client:
        async with client.watch("/api/v1/pods"):
            assert len(client.store._watches) == 1
        while client.store._watches:
            await client.ask("POST", PODS, {"metadata": {"generateName": "pod-"}})


async def test_what_is_posted_is_there() -> None:
    async with serving() as client:
        status, made = await client.ask("POST", PODS, {"metadata": {"name": "a"}})
        assert status == 201
        assert made["metadata"]["namespace"] == "default"
        assert made["metadata"].keys() >= {"uid", "creationTimestamp", "resourceVersion"}
        assert await client.ask("GET", f"{PODS}/a") == (200, made)


async def test_generated_names_are_different() -> None:
    async with serving() as client:
        for _ in range(2):
            await client.ask("POST", PODS, {"metadata": {"generateName": "web-"}})
        await client.ask("POST", PODS, {})
        first, second, third = await client.names(PODS)
        assert first != second
        assert first.startswith("web-")
        assert second.startswith("web-")
        assert third.startswith("object-")


async def test_a_name_is_taken_only_once() -> None:
    async with serving() as client:
        node = {"metadata": {"name": "node"}}
        assert (await client.ask("POST", NODES, node))[0] == 201
        status, answer = await client.ask("POST", NODES, node)
        assert (status, answer["reason"], answer["code"]) == (409, "AlreadyExists", 409)
        assert (await client.ask("POST", PODS, node))[0] == 201


async def test_an_object_that_is_replaced_keeps_its_identity() -> None:
    async with serving() as client:
        _, old = await client.ask("POST", LEASES, {"metadata": {"name": "node"}, "spec": {"a": 1}})
        metadata = {"name": "node", "namespace": "kube-node-lease"}
        status, new = await client.ask(
            "PUT", f"{LEASES}/node", {"metadata": metadata, "spec": {"b": 2}}
        )
        assert status == 200
        assert new["spec"] == {"b": 2}
        for name in ("uid", "creationTimestamp"):
            assert new["metadata"][name] == old["metadata"][name]
        assert new["metadata"]["resourceVersion"] != old["metadata"]["resourceVersion"]


async def test_a_patch_of_the_status_changes_the_object() -> None:
    async with serving() as client:
        client.store.put("pods", pod("a"))
        for condition in ("Ready", "Initialized"):
            patch = {"status": {"conditions": [{"type": condition, "status": "True"}]}}
            status, _ = await client.ask("PATCH", f"{PODS}/a/status", patch)
            assert status == 200
        _, found = await client.ask("GET", f"{PODS}/a")
        assert [one["type"] for one in found["status"]["conditions"]] == ["Ready", "Initialized"]
        assert found["spec"] == {"nodeName": "node"}


async def test_a_deleted_object_is_gone() -> None:
    async with serving() as client:
        client.store.put("pods", pod("a"))
        status, answer = await client.ask("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0})
        assert (status, answer["metadata"]["name"]) == (200, "a")
        assert (await client.ask("GET", f"{PODS}/a"))[0] == 404
        assert client.store.delete("pods", "default", "a") is None


@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH", "PUT"])
@pytest.mark.parametrize("path", [f"{NODES}/none", f"{PODS}/none", "/api/v1/namespaces/none"])
async def test_an_object_that_is_not_there_is_not_found(method: str, path: str) -> None:
    async with serving() as client:
        status, answer = await client.ask(method, path, {})
        assert (status, answer["kind"], answer["reason"]) == (404, "Status", "NotFound")


@pytest.mark.parametrize("path", ["/", "/healthz", "/api", "/api/v1", "/apis/apps/v1", "/api/v2/x"])
async def test_a_path_outside_of_the_interface_is_not_found(path: str) -> None:
    async with serving() as client:
        assert (await client.ask("GET", path))[0] == 404


async def test_lists_that_are_held_are_answered_later() -> None:
    async with serving() as client:
        held = client.server.hold("pods")
        answer = asyncio.create_task(client.names(PODS))
        while not answer.done() and not held._waiters:
            assert await client.names(NODES) == []
        assert not answer.done()
        client.store.put("pods", pod("a"))
        assert (await client.ask("GET", f"{PODS}/a"))[0] == 200
        held.set()
        assert await answer == ["a"]
        assert await client.names(PODS) == ["a"]


async def test_tokens_are_issued_and_everybody_is_allowed() -> None:
    async with serving() as client:
        path = "/api/v1/namespaces/default/serviceaccounts/default/token"
        status, answer = await client.ask("POST", path, {"spec": {"audiences": []}})
        assert (status, answer["spec"]) == (201, {"audiences": []})
        assert answer["status"].keys() == {"token", "expirationTimestamp"}
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        status, answer = await client.ask("POST", path, {})
        assert (status, answer["status"]["authenticated"]) == (201, True)
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        assert (await client.ask("POST", path, {}))[1]["status"]["allowed"] is True


async def test_the_node_has_room_for_any_pod() -> None:
    async with serving() as client:
        capacity = {"cpu": "4", "vendor.example/nic": "2"}
        node = {"metadata": {"name": "node"}, "status": {"allocatable": capacity}}
        client.store.put("nodes", node)
        _, answer = await client.ask("GET", f"{NODES}/node")
        assert answer["status"]["allocatable"]["cpu"] == "1000000"
        assert answer["status"]["allocatable"]["hugepages-1Gi"] == "1Ei"
        assert answer["status"]["allocatable"]["vendor.example/nic"] == "2"
        stored = client.store.get("nodes", "", "node")
        assert stored
        assert stored["status"]["allocatable"] == capacity


async def test_a_node_gets_room_for_the_devices_that_pods_request() -> None:
    store = Store()
    server = ApiServer(store)
    store.put("nodes", {"metadata": {"name": "node"}})
    changes = store.watch("nodes")
    server.make_room(["vendor.example/nic", "vendor.example/gpu"])
    server.make_room(["vendor.example/nic"])
    assert server.room["vendor.example/nic"] == "1Ei"
    assert changes.qsize() == 1
    assert "vendor.example/nic" not in ApiServer(store).room


READY = {"type": "Ready", "status": "False", "reason": "Starting"}
DISK = {"type": "DiskPressure", "status": "False"}


@pytest.mark.parametrize(
    ("old", "patch", "new"),
    [
        ({"a": 1, "b": 2}, {"b": 3, "c": 4}, {"a": 1, "b": 3, "c": 4}),
        ({"a": 1, "b": 2}, {"a": None, "none": None}, {"b": 2}),
        ({"a": {"b": 1}}, {"a": {"c": {"d": None, "e": 1}}}, {"a": {"b": 1, "c": {"e": 1}}}),
        ({"a": {"b": 1}}, {"a": 2}, {"a": 2}),
        ({"args": ["a", "b"]}, {"args": ["c"]}, {"args": ["c"]}),
        (
            {"conditions": [READY, DISK]},
            {
                "$setElementOrder/conditions": [{"type": "Ready"}, {"type": "DiskPressure"}],
                "conditions": [{"type": "Ready", "status": "True", "reason": None}],
            },
            {"conditions": [{"type": "Ready", "status": "True"}, DISK]},
        ),
        (
            {"conditions": [READY, DISK]},
            {
                "conditions": [
                    {"$patch": "delete", "type": "Ready"},
                    {"type": "New", "$retainKeys": []},
                ]
            },
            {"conditions": [DISK, {"type": "New"}]},
        ),
        ({}, {"conditions": [{"$patch": "delete", "type": "Ready"}, DISK]}, {"conditions": [DISK]}),
        (
            {"containers": [{"name": "a", "env": [{"name": "x", "value": "1"}]}]},
            {"containers": [{"name": "a", "env": [{"name": "y", "value": "2"}]}]},
            {"containers": [{"name": "a", "env": [{"name": "y", "value": "2"}]}]},
        ),
        (
            {"podIPs": [{"ip": "10.0.0.1"}]},
            {"podIPs": [{"ip": "10.0.0.2"}, {"$patch": "delete", "ip": "10.0.0.1"}]},
            {"podIPs": [{"ip": "10.0.0.2"}]},
        ),
    ],
)
def test_a_strategic_merge_patch_merges(old: Object, patch: Object, new: Object) -> None:
    before = json.dumps(old)
    assert merge(old, patch) == new
    assert json.dumps(old) == before


def test_those_who_watch_a_store_get_copies() -> None:
    store = Store()
    changes = store.watch("pods")
    stored = store.put("pods", pod("a"))
    stored["spec"]["nodeName"] = "changed"
    kind, seen = changes.get_nowait()
    assert (kind, seen["spec"]) == ("ADDED", {"nodeName": "node"})
    store.unwatch(changes)
    store.clear()
    assert store.list("pods") == []
    store.put("pods", pod("b"))
    assert changes.empty()
