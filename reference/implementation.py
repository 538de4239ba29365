"""The reference implementation, for use in the same process: a request becomes an answer.

`Reference` is the one way in. It keeps the started node between calls, as a kubelet does, and turns
every error into the answer that the protocol has for it.
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
    from collections.abc import Mapping

    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.deviations.releases import Release
    from numaproof.reference.devices.policy import PreferredDevices
    from numaproof.reference.node import StartedNode

_SCOPES = ("container", "pod")


class Reference:
    """The reference implementation.

    Args:
        follows_docs: keep every documented rule, where kubelets of the same release break some.
        exceptions: the names of defects for which it is the other way round, and of changes
            between releases that are left out.
    """

    def __init__(
        self, *, follows_docs: bool = False, exceptions: frozenset[str] = frozenset()
    ) -> None:
        """Has no node until a start; see the class."""
        self._follows_docs = follows_docs
        self._exceptions = exceptions
        self._node: StartedNode | None = None
        self._machines: WeakKeyDictionary[trees.Root, MachineInfo] = WeakKeyDictionary()

    @property
    def node(self) -> StartedNode | None:
        """The started node; None before the first start and after a refused one."""
        return self._node

    def prefer_devices(self, devices: Mapping[str, PreferredDevices]) -> None:
        """Sets the devices, by container and resource, to take before others that are as good.

        A kubelet may take any of them. To compare with one, have the reference take the same
        devices where it may. Holds until the next start or the next call of this.
        """
        if self._node is not None:
            self._node.device_manager.first_choice = devices

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Answers one request; every error is an answer too.

        `operation` is one of `numaproof.protocol.operations.OPERATIONS`, and `args` are of the type
        that it has there.
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
            # What is wrong is the request: nothing broke that a trace could show.
            return messages.Fault(f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 - a fault is an answer, never a crash
            return messages.Fault(f"{type(error).__name__}: {error}", traceback.format_exc())

    def _answer(self, operation: str, args: Any) -> messages.Answer:
        known = OPERATIONS.get(operation)
        if known is None:
            raise UnsupportedError(f"operation {operation}")
        if known.needs_start and self._node is None:
            raise NotStartedError(f"{operation} needs a started node")
        answering = self._node if known.needs_start else self
        answer: messages.Answer = getattr(answering, operation)(args)
        return answer

    def hello(self, _args: messages.HelloArgs) -> messages.Hello:
        """Who the reference is and what it implements."""
        newest = releases.TABLE[NEWEST]
        return messages.Hello(
            protocol=messages.PROTOCOL_VERSION,
            name="numaproof reference",
            version=importlib.metadata.version("numaproof"),
            language="Python",
            kubernetes=RELEASES,
            level="kubelet",
            operations=tuple(OPERATIONS),
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
        """Starts a node; what an earlier one had in memory is gone.

        Raises:
            StartError: a stage refused.
            UnsupportedError: the reference does not implement what the configuration asks for.
        """
        self._node = None
        release = self._release(args.kubernetes)
        self._node = startup.start(args, release, self._machine)
        return self._node.start_answer()

    def merge(self, args: messages.MergeArgs) -> messages.Merged:
        """Merges hints, as the Topology Manager does.

        Raises:
            StartError: invalid options, or distances are missing.
        """
        return operations.merge(args, self._release(args.kubernetes))

    def assign(self, args: messages.AssignArgs) -> messages.Assigned:
        """Assigns CPUs, without a node.

        Raises:
            StartError: invalid options, or a machine without CPUs.
            AdmissionError: the CPUs are not available.
        """
        return messages.Assigned(operations.assign(args, self._release(args.kubernetes)))

    def discover(self, args: messages.DiscoverArgs) -> MachineInfo:
        """The machine that a tree with ``sys/`` and ``proc/`` describes.

        Raises:
            StartError: the tree describes no machine.
        """
        return self._machine(args.root, self._release(args.kubernetes))

    def _machine(self, root: str, release: Release) -> MachineInfo:
        """The machine at a root; a tree that this process holds never changes, and is read once."""
        if "\0" in root:
            raise RequestError("the root is no path: it has a NUL character")
        tree = trees.held_root(root)
        if tree is None:
            return release.in_order(_discover(trees.open_root(root)))
        if tree not in self._machines:
            self._machines[tree] = _discover(tree)
        return release.in_order(self._machines[tree])


def _discover(root: trees.Root) -> MachineInfo:
    try:
        return discover(root)
    except DiscoveryError as error:
        raise StartError("discovery", str(error)) from None
