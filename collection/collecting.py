"""Collects the parts of an archive, one after the other; a part that fails is named in it."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.collection import debug_pod, kept_fields, node_script
from numaproof.collection.kubectl import Kubectl, KubectlError
from numaproof.fakesys import Tree
from numaproof.formats.nodes import contents
from numaproof.formats.nodes.contents import Failure, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numaproof.collection.debug_pod import DebugPod
    from numaproof.collection.kept_fields import Fields
    from numaproof.fakesys import Entry


@dataclass(frozen=True)
class Request:
    """What to collect: a node's objects, and what its debug pod sees if there is one."""

    node: str
    pod: DebugPod | None = None

    def node_arguments(self) -> tuple[str, ...]:
        """Returns the arguments of kubectl that print the node."""
        return ("get", "node", self.node, "--output=json")

    def configuration_arguments(self) -> tuple[str, ...]:
        """Returns the arguments of kubectl that print the kubelet's effective configuration."""
        return ("get", f"--raw=/api/v1/nodes/{self.node}/proxy/configz")

    def pods_arguments(self) -> tuple[str, ...]:
        """Returns the arguments of kubectl that print the node's pods."""
        selector = f"--field-selector=spec.nodeName={self.node}"
        return ("get", "pods", "--all-namespaces", selector, "--output=json")

    def topology_arguments(self) -> tuple[str, ...]:
        """Returns the arguments of kubectl that print the node's NodeResourceTopology."""
        resource = "noderesourcetopologies.topology.node.k8s.io"
        return ("get", resource, self.node, "--output=json")


def commands(kubectl: Kubectl, request: Request) -> Iterator[str]:
    """Yields the commands that `collect` runs, as in a shell."""
    steps = [
        request.node_arguments(),
        request.configuration_arguments(),
        request.pods_arguments(),
        request.topology_arguments(),
    ]
    if pod := request.pod:
        steps += [
            pod.create_arguments(),
            pod.status_arguments(),
            pod.logs_arguments(),
            pod.delete_arguments(),
        ]
    for arguments in steps:
        repeats = "  # until it ends" if pod and arguments == pod.status_arguments() else ""
        yield shlex.join(kubectl.command(arguments)) + repeats


class NothingCollectedError(Exception):
    """The node or the cluster does not exist, or the user may not read anything."""


@dataclass(frozen=True)
class Collection:
    """The entries of an archive, by path, and the record among them."""

    entries: Mapping[str, Entry]
    record: Record

    def tree(self) -> Tree:
        """Returns the contents of the archive."""
        return Tree(self.record.node, dict(sorted(self.entries.items())))


def collect(kubectl: Kubectl, request: Request, warn: Callable[[str], None]) -> Collection:
    """Collects what a request names; parts that fail are named in the record.

    Args:
        kubectl: the kubectl.
        request: what to collect.
        warn: called with a message about a pod that can't be deleted.

    Raises:
        NothingCollectedError: no part could be collected.
    """
    collecting = _Collecting(kubectl, request, warn)
    collecting.objects()
    if request.pod:
        collecting.debug(request.pod)
    if not collecting.entries:
        first = collecting.failures[0]
        raise NothingCollectedError(_sentence(first))
    return collecting.finish()


def _sentence(failure: Failure) -> str:
    return f"{failure.message} ({failure.fix})" if failure.fix else failure.message


@dataclass
class _Collecting:
    """The entries so far, and what is missing."""

    kubectl: Kubectl
    request: Request
    warn: Callable[[str], None]
    entries: dict[str, Entry] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    left_out: dict[str, tuple[str, ...]] = field(default_factory=dict)
    kubernetes: str = ""

    def objects(self) -> None:
        """Collects the objects that the API server has.

        Raises:
            NothingCollectedError: there is no such node, or no cluster.
        """
        try:
            node = self._get(self.request.node_arguments())
        except KubectlError as error:
            if error.cause in ("absent", "unserved", "unreachable"):
                raise NothingCollectedError(str(error)) from None
            self._fail(contents.NODE, error)
        else:
            self._add(contents.NODE, node, kept_fields.NODE)
            self.kubernetes = _kubelet_version(node)
        self._configuration()
        self._pods()
        self._topology()

    def _configuration(self) -> None:
        try:
            found = self._get(self.request.configuration_arguments())
        except KubectlError as error:
            if error.cause == "unserved":
                message = "the kubelet doesn't serve configz"
                fix = "its enableDebuggingHandlers is false; name its file with --config"
                error = KubectlError(error.cause, message, fix)
            self._fail(contents.CONFIGURATION, error)
        else:
            self._add(contents.CONFIGURATION, found, kept_fields.CONFIGURATION)

    def _pods(self) -> None:
        try:
            found = self._get(self.request.pods_arguments()).get("items") or []
        except KubectlError as error:
            self._fail(contents.PODS, error)
            return
        pods, left_out = kept_fields.keep(found, kept_fields.POD)
        self._record_left_out(contents.PODS, (path.removeprefix("[].") for path in left_out))
        self.entries[contents.PODS] = _json({"apiVersion": "v1", "kind": "List", "items": pods})

    def _topology(self) -> None:
        try:
            found = self._get(self.request.topology_arguments())
        except KubectlError as error:
            # Most clusters have none.
            if error.cause not in ("absent", "unserved"):
                self._fail(contents.TOPOLOGY, error)
        else:
            self._add(contents.TOPOLOGY, found, kept_fields.TOPOLOGY)

    def debug(self, pod: DebugPod) -> None:
        """Collects what only a pod on the node sees."""
        parts = (contents.TREE, contents.STATE, contents.FLAGS)
        try:
            output = node_script.parse(debug_pod.run(self.kubectl, pod, self.warn))
        except KubectlError as error:
            for part in parts:
                self._fail(part, error)
            return
        except node_script.OutputError as error:
            self.failures += [Failure(part, str(error)) for part in parts]
            return
        self._tree(output.tree)
        self._flags(output.command_line)
        self._state(output.state, pod, _root_folder(output.command_line))

    def _tree(self, tree: Mapping[str, Entry] | None) -> None:
        if tree is None:
            self.failures.append(Failure(contents.TREE, "the node's /sys shows no CPUs"))
            return
        self.entries |= {f"{contents.TREE}/{path}": entry for path, entry in tree.items()}

    def _flags(self, command_line: Iterable[str]) -> None:
        found, others = node_script.known_flags(command_line)
        self._record_left_out(contents.FLAGS, others)
        if found:
            text = "".join(f"{shlex.quote(flag)}\n" for flag in found)
            self.entries[contents.FLAGS] = text.encode()
        else:
            message = "no process is called kubelet, or it has no flags"
            self.failures.append(Failure(contents.FLAGS, message))

    def _state(self, state: Mapping[str, bytes], pod: DebugPod, root: str) -> None:
        if state:
            found = {f"{contents.STATE}/{path}": content for path, content in state.items()}
            self.entries |= found
            return
        message = f"{pod.kubelet_folder} has no checkpoint files"
        elsewhere = root not in ("", pod.kubelet_folder)
        fix = f"the kubelet uses --root-dir={root}: add --kubelet-dir {root}" if elsewhere else ""
        self.failures.append(Failure(contents.STATE, message, fix))

    def finish(self) -> Collection:
        """Returns the archive's entries, with a record."""
        parts = sorted({path.partition("/")[0] for path in self.entries})
        record = Record(
            node=self.request.node,
            kubernetes=self.kubernetes,
            parts=tuple(parts),
            failures=tuple(self.failures),
            left_out=self.left_out,
        )
        text = msgspec.yaml.encode(record)
        return Collection({**self.entries, contents.RECORD: text}, record)

    def _get(self, arguments: tuple[str, ...]) -> dict[str, Any]:
        output = self.kubectl.run(arguments)
        try:
            found = json.loads(output)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            command = shlex.join(self.kubectl.command(arguments))
            raise KubectlError("failed", f"`{command}` did not print a JSON object")
        return found

    def _add(self, part: str, value: dict[str, Any], fields: Fields) -> None:
        found, left_out = kept_fields.keep(value, fields)
        self._record_left_out(part, left_out)
        self.entries[part] = _json(found)

    def _record_left_out(self, part: str, names: Iterable[str]) -> None:
        if found := tuple(sorted(names)):
            self.left_out[part] = found

    def _fail(self, part: str, error: KubectlError) -> None:
        self.failures.append(Failure(part, error.message, error.fix))


def _json(value: Any) -> bytes:
    return f"{json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)}\n".encode()


def _kubelet_version(node: Mapping[str, Any]) -> str:
    try:
        return str(node["status"]["nodeInfo"]["kubeletVersion"])
    except (KeyError, TypeError):
        return ""


def _root_folder(command_line: Iterable[str]) -> str:
    """Returns the value of ``--root-dir``; empty if it isn't set."""
    arguments = [*command_line]
    for number, argument in enumerate(arguments):
        name, equals, value = argument.lstrip("-").partition("=")
        if name.replace("_", "-") == "root-dir":
            return value if equals else next(iter(arguments[number + 1 :]), "")
    return ""
