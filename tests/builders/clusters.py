"""Stand-ins for a cluster with one node: an API server for kubectl, and a kubectl."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from numaproof import fakesys
from numaproof.collection import node_script

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

NAME = "worker-7"


@contextmanager
def interruptible() -> Iterator[None]:
    """Lets SIGINT interrupt, also if a shell started the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


MACHINE = "epyc-7402p-nps2"

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": NAME,
        "uid": "3d0c",
        "labels": {"kubernetes.io/arch": "amd64", "customer.example/name": "secret-label"},
        "annotations": {"customer.example/key": "secret-annotation"},
        "managedFields": [{"manager": "secret-manager"}],
    },
    "spec": {"podCIDR": "10.0.0.0/24"},
    "status": {
        "capacity": {"cpu": "48", "memory": "131788800Ki", "pods": "110"},
        "allocatable": {"cpu": "46", "memory": "130000000Ki", "pods": "110"},
        "addresses": [{"type": "InternalIP", "address": "10.1.2.3"}],
        "nodeInfo": {
            "architecture": "amd64",
            "kubeletVersion": "v1.36.2",
            "machineID": "secret-machine-id",
        },
    },
}
CONFIGURATION = {
    "kubeletconfig": {
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": "0,24",
        "topologyManagerPolicy": "single-numa-node",
        "staticPodURLHeader": {"Authorization": ["secret-token"]},
    }
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "packets",
        "namespace": "shop",
        "uid": "uid-packets",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app": "secret-app"},
        "annotations": {"note": "secret-note"},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "packets-1", "uid": "u"}
        ],
    },
    "spec": {
        "nodeName": NAME,
        "priority": 7,
        "restartPolicy": "Always",
        "volumes": [{"name": "v", "secret": {"secretName": "secret-volume"}}],
        "containers": [
            {
                "name": "app",
                "image": "secret-image",
                "command": ["secret-command"],
                "env": [{"name": "PASSWORD", "value": "secret-value"}],
                "resources": {
                    "limits": {"cpu": "4", "memory": "4Gi"},
                    "requests": {"cpu": "4", "memory": "4Gi"},
                },
            }
        ],
    },
    "status": {
        "phase": "Running",
        "qosClass": "Guaranteed",
        "podIP": "10.0.0.9",
        "containerStatuses": [
            {"name": "app", "ready": True, "state": {"running": {"startedAt": "x"}}, "image": "i"}
        ],
    },
}
TOPOLOGY = {
    "apiVersion": "topology.node.k8s.io/v1alpha2",
    "kind": "NodeResourceTopology",
    "metadata": {"name": NAME},
    "topologyPolicies": ["SingleNUMANodeContainerLevel"],
    "attributes": [{"name": "secret-attribute", "value": "x"}],
    "zones": [
        {
            "name": f"node-{number}",
            "type": "Node",
            "costs": [{"name": "node-0", "value": 10}, {"name": "node-1", "value": 12}],
            "resources": [{"name": "cpu", "capacity": "24", "allocatable": "23", "available": "9"}],
        }
        for number in (0, 1)
    ],
}
SECRETS = ("secret", "10.0.0", "10.1.2", "PASSWORD")
"""Texts that must not get into an archive."""


@dataclass
class Cluster:
    """A cluster with one node, whose files are in a folder.

    Attributes:
        files: a folder with the node's ``sys``, ``proc`` and ``kubelet``.
        topology: whether there is a NodeResourceTopology.
        statuses: the HTTP statuses of requests that fail, by path.
        waits: why the debug pod's container waits for ever, if it does.
        requests: the requests that change something, in order.
        pods: the pods that exist in addition to the node's, by name.
        created: set when a pod is created.
    """

    files: Path
    topology: bool = True
    statuses: dict[str, int] = field(default_factory=dict)
    waits: str = ""
    requests: list[tuple[str, str]] = field(default_factory=list)
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    created: threading.Event = field(default_factory=threading.Event)

    def get(self, path: str) -> Any:
        """Returns the answer to a GET request; None if there is none."""
        if path.startswith("/api/v1/namespaces/default/pods/"):
            name, _, log = path.removeprefix("/api/v1/namespaces/default/pods/").partition("/")
            pod = self.pods.get(name)
            return pod and (self._log(pod) if log == "log" else pod)
        groups = [{"name": "topology.node.k8s.io", "versions": [_VERSION]}] if self.topology else []
        objects: dict[str, Any] = {
            "/api": {"kind": "APIVersions", "versions": ["v1"]},
            "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups},
            "/api/v1": _resources("v1", "nodes", "pods"),
            f"/api/v1/nodes/{NAME}": NODE,
            f"/api/v1/nodes/{NAME}/proxy/configz": CONFIGURATION,
            "/api/v1/pods": {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [POD]},
        }
        if self.topology:
            group = "/apis/topology.node.k8s.io/v1alpha2"
            objects[group] = _resources(group.removeprefix("/apis/"), "noderesourcetopologies")
            objects[f"{group}/noderesourcetopologies/{NAME}"] = TOPOLOGY
        return objects.get(path)

    def _log(self, pod: Mapping[str, Any]) -> bytes:
        (container,) = pod["spec"]["containers"]
        script = container["command"][2]
        places = {
            node_script.SYS: self.files / "sys",
            node_script.PROC: self.files / "proc",
            node_script.KUBELET: self.files / "kubelet",
        }
        for name, folder in places.items():
            script = script.replace(f"cd {name} ", f"cd {folder} ")
        return subprocess.run(["sh", "-c", script], capture_output=True, check=True).stdout

    def create(self, pod: dict[str, Any]) -> dict[str, Any]:
        """Creates a pod, which ends at once or waits for ever."""
        waiting = {"state": {"waiting": {"reason": self.waits, "message": "no such image"}}}
        status = {"phase": "Pending", "containerStatuses": [waiting]}
        pod["status"] = status if self.waits else {"phase": "Succeeded"}
        self.pods[pod["metadata"]["name"]] = pod
        self.created.set()
        return pod


_VERSION = {"groupVersion": "topology.node.k8s.io/v1alpha2", "version": "v1alpha2"}
_KINDS = {"nodes": "Node", "pods": "Pod", "noderesourcetopologies": "NodeResourceTopology"}


def _resources(version: str, *names: str) -> dict[str, Any]:
    return {
        "kind": "APIResourceList",
        "groupVersion": version,
        "resources": [
            {
                "name": name,
                "singularName": name.removesuffix("s"),
                "namespaced": name == "pods",
                "kind": _KINDS[name],
                "verbs": ["create", "delete", "get", "list"],
            }
            for name in names
        ],
    }


_FORBIDDEN = {
    f"/api/v1/nodes/{NAME}/proxy/configz": ("nodes/proxy", "get"),
    "/api/v1/pods": ("pods", "list"),
    "/api/v1/namespaces/default/pods": ("pods", "create"),
    f"/api/v1/nodes/{NAME}": ("nodes", "get"),
}


def status(path: str, code: int) -> dict[str, Any]:
    """A failure as the API server describes it."""
    message = "the server could not find the requested resource"
    reason = "NotFound"
    if code == 403:
        resource, verb = _FORBIDDEN[path]
        reason = "Forbidden"
        message = (
            f'{resource} is forbidden: User "jane" cannot {verb} resource "{resource}" in API group'
            ' "" at the cluster scope'
        )
    elif path.startswith(("/api/v1/nodes/", "/api/v1/namespaces")) and "proxy" not in path:
        kind, name = path.split("/")[-2:]
        message = f'{kind} "{name}" not found'
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


@contextmanager
def serve(cluster: Cluster) -> Iterator[str]:
    """Serves a cluster on the loopback interface; yields the URL."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self, found: Any) -> None:
            path = urlsplit(self.path).path
            code = cluster.statuses.get(path, 404 if found is None else 200)
            body = found if code == 200 else status(path, code)
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self.answer(cluster.get(urlsplit(self.path).path))

        def do_POST(self) -> None:
            path = urlsplit(self.path).path
            cluster.requests.append(("POST", path))
            pod = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer(cluster.create(pod) if path not in cluster.statuses else None)

        def do_DELETE(self) -> None:
            path = urlsplit(self.path).path
            cluster.requests.append(("DELETE", path))
            self.answer(cluster.pods.pop(path.rpartition("/")[2], None))

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def node_files(folder: Path) -> Path:
    """Writes the files of a node: a machine's tree, a kubelet's process and its state."""
    fakesys.write_directory(fakesys.build_tree(fakesys.load_profile(MACHINE)), folder)
    process = folder / "proc" / "812"
    process.mkdir()
    (process / "comm").write_text("kubelet\n", "utf-8")
    line = ("/usr/bin/kubelet", "--config=/etc/kubelet.yaml", "--cpu-manager-policy", "static")
    line += ("--bootstrap-kubeconfig=/secret-path", "--vendor-token=secret-token", "--node-ip", "1")
    (process / "cmdline").write_bytes("\0".join((*line, "")).encode())
    state = folder / "kubelet"
    (state / "device-plugins").mkdir(parents=True)
    (state / "cpu_manager_state").write_bytes(STATE)
    return folder


STATE = (
    b'{"policyName":"static","defaultCpuSet":"0,3-24,27-47",'
    b'"entries":{"uid-packets":{"app":"1-2,25-26"}},"checksum":2978077298}'
)
"""What the CPU Manager of Kubernetes 1.36 writes for `POD`."""

SCRIPT = """#!{python}
import json, pathlib, sys
line = " ".join(sys.argv[1:])
here = pathlib.Path(__file__).parent
with (here / "calls").open("a") as calls:
    print(line, file=calls)
for beginning, answer in json.loads((here / "answers.json").read_text()).items():
    if line.startswith(beginning):
        sys.stdout.write(answer.get("out", ""))
        sys.stderr.write(answer.get("err", ""))
        sys.exit("err" in answer)
sys.exit(f"error: no answer to {{line}}")
"""


@dataclass(frozen=True)
class FakeKubectl:
    """A program that answers like kubectl, by the beginning of its arguments."""

    folder: Path

    @property
    def program(self) -> str:
        """Its path."""
        return str(self.folder / "kubectl")

    def calls(self) -> list[str]:
        """Returns the arguments of each call."""
        return (self.folder / "calls").read_text("utf-8").splitlines()


def fake_kubectl(folder: Path, **answers: str | dict[str, str]) -> FakeKubectl:
    """Writes a kubectl; `answers` replace those of a cluster without NodeResourceTopology.

    Args:
        folder: a new folder.
        answers: by name: node, configz, pods, topology, create, pod, logs, delete. A text is an
            error message.
    """
    folder.mkdir()
    beginnings = {
        "node": "get node ",
        "configz": "get --raw=",
        "pods": "get pods ",
        "topology": "get noderesourcetopologies",
        "create": "create ",
        "pod": "get pod numaproof-",
        "logs": "logs ",
        "delete": "delete ",
    }
    usual: dict[str, str | dict[str, str]] = {
        "node": {"out": json.dumps(NODE)},
        "configz": {"out": json.dumps(CONFIGURATION)},
        "pods": {"out": json.dumps({"kind": "List", "items": [POD]})},
        "topology": 'error: the server doesn\'t have a resource type "noderesourcetopologies"',
        "create": {},
        "pod": {"out": json.dumps({"status": {"phase": "Succeeded"}})},
        "logs": {},
        "delete": {},
    }
    table = {
        beginnings[name]: {"err": answer} if isinstance(answer, str) else answer
        for name, answer in {**usual, **answers}.items()
    }
    (folder / "answers.json").write_text(json.dumps(table), "utf-8")
    (folder / "kubectl").write_text(SCRIPT.format(python=sys.executable), "utf-8")
    (folder / "kubectl").chmod(0o755)
    return FakeKubectl(folder)
