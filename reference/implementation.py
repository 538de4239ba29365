"""The reference implementation as an object: it turns requests into answers.

`Reference` is the only entry point. It keeps the started node between calls, as a kubelet does, and
turns every error into the answer that the protocol prescribes.
"""

from __future__ import annotations

import importlib.metadata
import traceback
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from numaproof.protocol import messages
from numaproof.protocol.features import NAMED
from numaproof.protocol.operations import OPERATIONS
from numaproof.protocol.releases import NEWEST, RELEASES
from numaproof.reference import operations, startup
from numaproof.reference.cadvisor.discovery import DiscoveryError, discover
from numaproof.reference.choices import NO_CHOICES
from numaproof.reference.deviations import releases
from numaproof.reference.errors import (
    AdmissionError,
    NotStartedError,
    RequestError,
    StartError,
    UnsupportedError,
)
from numaproof.reference.pods.pod import PodError
from numaproof.workdir import trees

if TYPE_CHECKING:
    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.choices import Choices
    from numaproof.reference.deviations.releases import Release
    from numaproof.reference.node import StartedNode

_SCOPES = ("container", "pod")

_OPERATIONS = tuple(name for name in OPERATIONS if name != "coverage")
"""The reference has no counters."""


class Reference:
    """The reference implementation.

    Args:
        follows_docs: whether to follow the documentation even where kubelets of the same release
            break it.
        exceptions: names of defects for which `follows_docs` is inverted, and of changes between
            releases that are left out.
    """

    def __init__(
        self, *, follows_docs: bool = False, exceptions: frozenset[str] = frozenset()
    ) -> None:
        self._follows_docs = follows_docs
        self._exceptions = exceptions
        self._choices = NO_CHOICES
        self._node: StartedNode | None = None
        self._machines: WeakKeyDictionary[trees.Root, dict[bool, MachineInfo]] = WeakKeyDictionary()

    @property
    def node(self) -> StartedNode | None:
        """The started node, or None before the first start and after a refused start."""
        return self._node

    def prefer(self, choices: Choices) -> None:
        """Sets the choices to make in the following calls wherever they are equally good.

        A kubelet may pick any of several devices, and other implementations may also pick other
        CPUs and NUMA nodes. This makes the reference follow them.
        """
        self._choices = choices
        if self._node is not None:
            self._node.choices = choices

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Answers one request; errors become answers.

        `operation` is a key of `numaproof.protocol.operations.OPERATIONS`, which also defines the
        type of `args`.
        """
        try:
            return self._answer(operation, args)
        except StartError as error:
            return messages.StartRefused(error.stage, str(error))
        except AdmissionError as error:
            told = (
                self._node.rejected_pod_status(error)
                if operation == "admit" and self._node
                else None
            )
            return messages.AdmissionRefused(error.reason, str(error), told)
        except UnsupportedError as error:
            return messages.Unsupported(str(error))
        except (NotStartedError, PodError, RequestError) as error:
            # The request is wrong and nothing broke, so a traceback would not help.
            return messages.Fault(f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 - a fault is an answer, never a crash
            return messages.Fault(f"{type(error).__name__}: {error}", traceback.format_exc())

    def _answer(self, operation: str, args: Any) -> messages.Answer:
        if operation not in _OPERATIONS:
            raise UnsupportedError(f"operation {operation}")
        known = OPERATIONS[operation]
        if known.needs_start and self._node is None:
            raise NotStartedError(f"{operation} needs a started node")
        answering = self._node if known.needs_start else self
        answer: messages.Answer = getattr(answering, operation)(args)
        return answer

    def hello(self, _args: messages.HelloArgs) -> messages.Hello:
        """Identifies the reference and lists what it implements."""
        newest = releases.TABLE[NEWEST]
        return messages.Hello(
            protocol=messages.PROTOCOL_VERSION,
            name="numaproof reference",
            version=importlib.metadata.version("numaproof"),
            language="Python",
            kubernetes=RELEASES,
            level="kubelet",
            operations=_OPERATIONS,
            policies=messages.Policies(
                cpu=("none", "static"),
                memory=("None", "Static"),
                topology=("none", "best-effort", "restricted", "single-numa-node"),
                scope=_SCOPES,
            ),
            options=messages.Options(
                cpu=tuple(newest.cpu_options), topology=tuple(newest.topology_options)
            ),
            features=NAMED,
        )

    def _release(self, version: str | None) -> Release:
        try:
            return releases.release(
                version, follows_docs=self._follows_docs, exceptions=self._exceptions
            )
        except releases.UnknownReleaseError as error:
            raise UnsupportedError(str(error)) from None

    def start(self, args: messages.StartArgs) -> messages.Started:
        """Starts a node and discards the previous node's memory.

        Raises:
            StartError: the start is refused.
            UnsupportedError: the configuration uses something that the reference does not support.
        """
        self._node = None
        release = self._release(args.kubernetes)
        self._node = startup.start(args, release, self._machine, self._choices)
        return self._node.start_answer()

    def merge(self, args: messages.MergeArgs) -> messages.Merged:
        """Merges hints as the Topology Manager does.

        Raises:
            StartError: an option is invalid, or distances are missing.
        """
        return operations.merge(args, self._release(args.kubernetes))

    def assign(self, args: messages.AssignArgs) -> messages.Assigned:
        """Assigns CPUs without a node.

        Raises:
            StartError: an option is invalid, or the machine has no CPUs.
            AdmissionError: the CPUs are not available.
        """
        return messages.Assigned(operations.assign(args, self._release(args.kubernetes)))

    def discover(self, args: messages.DiscoverArgs) -> MachineInfo:
        """Reads the machine that a tree with ``sys/`` and ``proc/`` describes.

        Raises:
            StartError: the tree does not describe a machine.
        """
        return self._machine(args.root, self._release(args.kubernetes))

    def _machine(self, root: str, release: Release) -> MachineInfo:
        """Reads the machine at `root`; trees in memory never change and are cached."""
        if "\0" in root:
            raise RequestError("the root is not a path: it contains a NUL character")
        tree = trees.held_root(root)
        if tree is None:
            found = _discover(trees.open_root(root), by_siblings=release.by_siblings)
            return release.in_order(found)
        machines = self._machines.setdefault(tree, {})
        if release.by_siblings not in machines:
            machines[release.by_siblings] = _discover(tree, by_siblings=release.by_siblings)
        return release.in_order(machines[release.by_siblings])


def _discover(root: trees.Root, *, by_siblings: bool) -> MachineInfo:
    try:
        return discover(root, by_siblings=by_siblings)
    except DiscoveryError as error:
        raise StartError("discovery", str(error)) from None
