"""A session with an implementation: the calls, their answers and the pods on the node.

The session tracks what the harness did, such as the pods on the node and the effective
configuration, without knowing how an implementation decides. It records calls as plain values, so
that they can be displayed, saved and repeated.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, get_args

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.cases.manifests import completing_containers, containers
from numaproof.conformance.cases.schema import FileName
from numaproof.conformance.claims import needs
from numaproof.conformance.claims.needs import EarlierStart
from numaproof.conformance.execution.implementation import (
    Implementation,
    ImplementationFailure,
    ProcessBacked,
    SpoiledState,
)
from numaproof.conformance.execution.truncation import (
    replace_text,
    reported_findings,
    reported_problems,
    truncate,
)
from numaproof.conformance.judging.invariants.view import View, arrivals, count_admissions
from numaproof.conformance.judging.oracle import (
    STATE_DIR,
    AnswerJudge,
    disagreement,
    without_path,
)
from numaproof.protocol import codec, discovery, events, messages
from numaproof.workdir.state_directory import StateDirectory, StateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numaproof.conformance.cases.machine_properties import Facts
    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.conformance.judging.finding import Finding
    from numaproof.protocol.machine import MachineInfo

_DISCOVERY = ("operation discover", discovery.WHOLE)
_CHECKPOINTS: tuple[FileName, ...] = get_args(FileName)


@dataclass
class Call:
    """A call, its answer and the problems found.

    `before` lists, as sentences, the harness's changes to the node since the previous call, and
    `needs` lists the claims that the call needs.
    """

    operation: str
    args: messages.Args
    answer: messages.Answer | None = None
    problems: list[Finding] = field(default_factory=list)
    before: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


@dataclass
class Session:
    """Drives an implementation on one machine, with one state directory.

    With an `oracle`, every call is also made to the reference, and differences at `level` become
    problems of the call.

    Attributes:
        capabilities: what it can do.
        shadow_oracle: compares answers at levels above `level` without reporting problems.
        agreed_level: the highest level at which all answers so far agree.
        pods: manifests of the pods on the node, by uid, in order of admission.
        ended_containers: names of the containers that have ended, by pod uid.
        running_pods: uids of the pods admitted since the node last booted.
        config: the configuration of the last start.
        start_answer: the answer to the last start; None before the first start and after a refusal.
        devices: the devices that the plugins last reported.
        from_tree: whether starts discover the machine from its tree if the implementation claims
            discovery.
        tell: the optional fields that starts request.
        check_node: whether pods must also fit into the node's allocatable resources.
    """

    implementation: Implementation
    capabilities: Capabilities
    state_dir: StateDirectory
    kubernetes: str
    machine: MachineInfo
    level: messages.Level
    root: Callable[[], str | Path] | None = None
    oracle: AnswerJudge | None = None
    shadow_oracle: AnswerJudge | None = None
    agreed_level: messages.Level = messages.LEVELS[-1]
    pods: dict[str, messages.Pod] = field(default_factory=dict)
    ended_containers: dict[str, frozenset[str]] = field(default_factory=dict)
    running_pods: set[str] = field(default_factory=set)
    config: messages.KubeletConfiguration = field(default_factory=dict)
    start_answer: messages.Started | None = None
    devices: tuple[messages.DeviceResource, ...] = ()
    from_tree: bool = False
    tell: tuple[messages.Told, ...] = ()
    check_node: bool = False
    calls: list[Call] = field(default_factory=list)
    _needed_claims: dict[str, None] = field(default_factory=dict)
    _earlier: EarlierStart | None = None
    _notes: list[str] = field(default_factory=list)
    _oracle_files: dict[Path, set[FileName]] = field(default_factory=dict)

    def require(self, *claims: str) -> None:
        """Records claims that the next call needs.

        Raises:
            NotSupportedError: the implementation doesn't make one of the claims.
        """
        self._needed_claims.update(dict.fromkeys(claims))
        self.capabilities.require(claims)

    @property
    def needed_claims(self) -> tuple[str, ...]:
        """The claims needed so far, in order. The last of these claims may be missing."""
        return tuple(self._needed_claims)

    @property
    def missing_claim(self) -> str:
        """The first claim that was needed but isn't made; empty if there is none."""
        return next((one for one in self.needed_claims if one not in self.capabilities.claims), "")

    @property
    def declined_claims(self) -> tuple[str, ...]:
        """The claims needed only by calls that were answered ``unsupported``."""
        needs: dict[bool, dict[str, None]] = {True: {}, False: {}}
        for call in self.calls:
            if call.answer is not None:
                declined = isinstance(call.answer, messages.Unsupported)
                needs[declined] |= dict.fromkeys(call.needs)
        return tuple(need for need in needs[True] if need not in needs[False])

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Makes a call and records it.

        Raises:
            NotSupportedError: the call needs a missing claim and was not made.
            ImplementationFailure: there was no answer. The call is recorded without an answer,
                unless the program failed after its previous answer.
        """
        needed = needs.of_call(operation, args, self.kubernetes, self.machine, self._earlier)
        call = Call(operation, args, before=tuple(self._notes), needs=tuple(needed))
        # Implementations without discovery get the machine in the request.
        spared = {*_DISCOVERY} if self.from_tree and operation == "start" else set()
        self.require(*(need for need in call.needs if need not in spared))
        self._notes.clear()
        self.calls.append(call)
        try:
            call.answer = self.implementation.call(operation, args)
        except ImplementationFailure as failure:
            if failure.after_answer and len(self.calls) > 1:
                self.calls.pop()  # the previous call is to blame
            raise
        if self._is_process_backed:
            # Check the state now, before the program and the reference use it in further calls.
            self.check_state()
        answer = self.normal(call.answer)
        if self.oracle:
            found = self.oracle.disagreement(operation, args, answer)
            call.problems += [found] if found else []
        self._probe_higher_level(operation, args, answer)
        return call.answer

    @cached_property
    def _is_process_backed(self) -> bool:
        """Whether the implementation is a program, cached because the check is slow."""
        return isinstance(self.implementation, ProcessBacked)

    def _probe_higher_level(
        self, operation: str, args: messages.Args, answer: messages.Answer
    ) -> None:
        """Lowers `agreed_level` as far as this answer requires, but not below `level`."""
        if self.agreed_level == self.level:
            return
        if self.shadow_oracle:
            self.shadow_oracle.disagreement(operation, args, answer)
        judge = self.shadow_oracle or self.oracle
        right, seen = judge.answer if judge else None, self.capabilities.discovers
        if right is None:
            return
        while self.agreed_level != self.level and disagreement(
            args, answer, right, self.agreed_level, seen
        ):
            self.agreed_level = messages.LEVELS[messages.LEVELS.index(self.agreed_level) - 1]

    def tree(self) -> str:
        """The path of the machine's tree.

        Raises:
            ValueError: the machine has no tree.
        """
        if self.root is None:
            raise ValueError("this machine has no tree to discover")
        return str(self.root())

    def normal(self, answer: messages.Answer) -> messages.Answer:
        """Replaces the state directory in an answer with `STATE_DIR`."""
        return without_path(answer, self.state_dir.path)

    def tamper(self, file: str, how: str, text: str) -> None:
        """Edits a checkpoint file, and the oracle's copy of it.

        Raises:
            NotSupportedError: the implementation doesn't claim the kubelet's checkpoint files.
            SpoiledState: the path is not a regular file.
        """
        self.require(needs.CHECKPOINT_FILES)
        with _state_errors_reported():
            changed = tamper(self.state_dir, file, how, text)
        if how == "write":
            self.note(f"wrote {file}: {text}")
        else:
            self.note(
                _DONE[how].format(file) if changed else f"left {file} alone: it is empty or missing"
            )
        for judge in filter(None, (self.oracle, self.shadow_oracle)):
            judge.alter(lambda path: tamper(StateDirectory(path), file, how, text))

    def _undo_refused_start(self) -> None:
        """Removes checkpoints that a refused start created from the oracle's state directory.

        A kubelet may write files before it refuses to start. Below level ``kubelet``, an
        implementation needn't, so files that it lacks can't be required afterwards.
        """
        if self.oracle is None or applies("kubelet", self.level):
            return
        before = self._oracle_files
        if self.start_answer is None:
            with _state_errors_reported():
                missing = {name for name in _CHECKPOINTS if self.state_dir.read(name) is None}

            def undo(path: Path) -> None:
                for name in missing - before.get(path, missing):
                    tamper(StateDirectory(path), name, "delete")

            self.oracle.alter(undo)

        def remember(path: Path) -> None:
            before[path] = {name for name in _CHECKPOINTS if (path / name).exists()}

        self.oracle.alter(remember)

    def check_state(self) -> None:
        """Checks the state directory without reading its files.

        Raises:
            SpoiledState: the directory is missing, unreadable, not a directory or too large, or a
                checkpoint is not a regular file.
        """
        with _state_errors_reported():
            self.state_dir.check(_CHECKPOINTS)

    def note(self, sentence: str) -> None:
        """Records a change to the node, to be listed in reports of failures."""
        self._notes.append(sentence)

    def change_release(self, kubernetes: str) -> None:
        """Switches the release from the next start on; that start finds the current state.

        Raises:
            NotSupportedError: the implementation doesn't claim that release.
        """
        self.capabilities = self.capabilities.of(kubernetes)
        self.note(f"changed the release from Kubernetes {self.kubernetes} to {kubernetes}")
        self.kubernetes = kubernetes

    def start(
        self,
        config: messages.KubeletConfiguration,
        flags: tuple[str, ...] = (),
        *,
        from_tree: bool = False,
        running: bool = False,
    ) -> messages.Answer:
        """Starts or restarts the managers with the pods on the node, without admitting them again.

        If `from_tree` is set, the implementation must claim discovery. If `running` is set, only
        the kubelet restarts: the admitted pods run, so their init containers have ended.
        """
        if running:
            self.running_pods &= self.pods.keys()
            for uid in self.running_pods:
                self._note_end(uid, *completing_containers(self.pods[uid]))
        else:
            self.running_pods.clear()
        if from_tree:
            self.require(*_DISCOVERY)
        self._undo_refused_start()
        chosen = self.from_tree and self.capabilities.makes(*_DISCOVERY)
        tree = self.tree() if from_tree or chosen else None
        args = messages.StartArgs(
            config=config,
            state_dir=str(self.state_dir.path),
            kubernetes=self.kubernetes,
            machine=None if tree else self.machine,
            root=tree,
            devices=self.devices,
            pods=tuple(self.pods.values()),
            flags=flags,
            tell=self.tell,
            running=self._running_containers() if running else None,
            check_node=self.check_node,
        )
        answer = self.call("start", args)
        self.config = needs.in_force(config, flags, self.kubernetes)
        self.start_answer = answer if isinstance(answer, messages.Started) else None
        if self.start_answer:  # a refused start leaves no state behind
            self._earlier = EarlierStart(self.config, self.machine)
        return answer

    def admit(self, pod: messages.Pod) -> messages.Answer:
        """Admits a pod, which stays on the node unless it is refused or unsupported.

        If a running pod can't be admitted again, it runs on.

        If a pod on the node is admitted again, its ended containers remain ended. Pods preempted
        by it leave the node.
        """
        answer = self.call("admit", messages.AdmitArgs(pod))
        uid = pod["metadata"]["uid"]
        if uid not in self.pods:
            self.ended_containers.pop(uid, None)
        if isinstance(answer, messages.Admitted):
            self.pods[uid] = pod
            self.running_pods.add(uid)
            for one in answer.preempted:
                self.pods.pop(one.uid, None)
                self.ended_containers.pop(one.uid, None)
                self.running_pods.discard(one.uid)
        elif not (isinstance(answer, messages.Unsupported) and uid in self.running_pods):
            self.pods.pop(uid, None)
            self.running_pods.discard(uid)
        return answer

    def resize(self, pod: messages.Pod) -> messages.Answer:
        """Requests other resources for a pod on the node, which it keeps unless they are refused.

        Raises:
            LookupError: the pod isn't on the node.
        """
        uid = pod["metadata"]["uid"]
        if uid not in self.pods:
            raise LookupError(f"resize: the pod {pod['metadata']['name']} is not on the node")
        answer = self.call("resize", messages.ResizeArgs(pod))
        if isinstance(answer, messages.Admitted):
            self.pods[uid] = pod
        return answer

    def _running_containers(self) -> dict[str, tuple[str, ...]]:
        """The containers that run, by the uids of admitted pods, in order."""
        return {
            uid: tuple(
                name
                for name in containers(pod)
                if name not in self.ended_containers.get(uid, frozenset())
            )
            for uid, pod in self.pods.items()
            if uid in self.running_pods
        }

    def end(self, uid: str, container: str) -> messages.Answer:
        """Reports that a container has ended by itself; a pod without app containers leaves."""
        answer = self.call("end", messages.EndArgs(uid, container))
        if not isinstance(answer, messages.Unsupported):
            self._note_end(uid, container)
            apps = {one["name"] for one in self.pods[uid]["spec"]["containers"]}
            if apps <= self.ended_containers[uid]:
                self.pods.pop(uid)
                self.ended_containers.pop(uid)
        return answer

    def _note_end(self, uid: str, *containers: str) -> None:
        self.ended_containers[uid] = self.ended_containers.get(uid, frozenset()) | {*containers}

    def remove(self, uid: str, container: str | None = None) -> messages.Answer:
        """Reports that a pod, or one of its containers, has ended.

        If the implementation doesn't support this, the pod or container remains.
        """
        answer = self.call("remove", messages.RemoveArgs(uid, container))
        if isinstance(answer, messages.Unsupported):
            return answer
        if container is None:
            self.pods.pop(uid, None)
            self.ended_containers.pop(uid, None)
        else:
            self._note_end(uid, container)
        return answer

    def report_devices(self, devices: tuple[messages.DeviceResource, ...]) -> messages.Answer:
        """Reports new lists of devices, as device plugins do.

        If the implementation doesn't support this, the previous lists remain in force.
        """
        answer = self.call("devices", messages.DevicesArgs(devices))
        if not isinstance(answer, messages.Unsupported):
            self.devices = devices
        return answer

    def view(self, facts: Facts, state: messages.State) -> View:
        """The view of the node for invariants, given the state just reported.

        Args:
            facts: the machine's current properties.
            state: the answer to `state`, after a successful start.
        """
        assert self.start_answer is not None
        made = [call.args for call in self.calls]
        admissions = count_admissions(made)
        return View(
            facts=facts,
            config=self.config,
            pods=dict(self.pods),
            ended_containers=frozenset(
                (uid, name) for uid, names in self.ended_containers.items() for name in names
            ),
            start_answer=self.start_answer,
            state=state,
            devices=self.devices,
            kubernetes=self.kubernetes,
            level=self.level,
            arrivals=arrivals(made),
            starts=sum(isinstance(args, messages.StartArgs) for args in made),
            readmitted_pods=frozenset(uid for uid, times in admissions.items() if times > 1),
            admitted_pods=frozenset(self.pods.keys() & admissions.keys()),
            check_node=self.check_node,
        )

    def reported_call(
        self, call: Call, expected: dict[str, Any] | None = None
    ) -> events.ReportedCall:
        """Converts a call for reports, with the expected answer if there is one."""
        return events.ReportedCall(
            operation=call.operation,
            args=self.to_stable_plain(call.args),
            answer=None if call.answer is None else self.to_stable_plain(call.answer),
            problems=reported_problems(call.problems),
            expected=expected,
            before=call.before,
            findings=reported_findings(call.problems),
        )

    def to_stable_plain(self, value: object) -> Any:
        """Converts a message to plain values, replacing the paths of the state directory and tree.

        Displayed, saved and compared values must not vary between runs.
        """
        plain = replace_text(codec.to_plain(value), str(self.state_dir.path), STATE_DIR)
        if isinstance(value, messages.StartArgs | messages.DiscoverArgs) and value.root:
            plain["root"] = TREE
        return truncate(plain)


TREE = "$TREE"
"""Replaces the path of a machine's tree in displayed values."""


@contextmanager
def _state_errors_reported() -> Iterator[None]:
    try:
        yield
    except StateError as error:
        raise SpoiledState(error) from None


def tamper(directory: StateDirectory, file: str, how: str, text: str = "") -> bool:
    """Edits a checkpoint file as requested by a case; see `cases.schema.TamperStep`.

    Returns:
        Whether there was a file to edit.

    Raises:
        StateError: the path is not a regular file.
    """
    if how == "write":
        directory.write(file, text.encode())
        return True
    content = directory.read(file)
    if not content:
        return False
    if how == "delete":
        directory.remove(file)
    else:
        directory.write(file, _TAMPERINGS[how](content))
    return True


_CHECKSUMS = re.compile(rb'"(?:checksum|dataChecksum)":')
_SECOND_PART = re.compile(rb',"data":"(?:[^"\\]|\\.)*","dataChecksum":[0-9]+')

_TAMPERINGS: dict[str, Callable[[bytes], bytes]] = {
    "truncate": lambda content: content[: len(content) // 2],
    "checksum": lambda content: _CHECKSUMS.sub(rb"\g<0>1", content),
    "policy": lambda content: content.replace(b"tatic", b"tatik"),
    "field": lambda content: content.replace(b'{"policyName"', b'{"extra":1,"policyName"'),
    "empty": lambda _: b"",
    "garbage": lambda _: b"\x00\x01{",
    "space": lambda content: b" " + content + b"\n",
    "old checksum": lambda content: content.replace(b'"checksum":', b'"checksum":1'),
    "old policy": lambda content: content.replace(b"tatic", b"tatik", 1),
    "data": lambda content: content.replace(b'"data":"{', b'"data":"{ '),
    "data checksum": lambda content: content.replace(b'"dataChecksum":', b'"dataChecksum":1'),
    "no data": lambda content: _SECOND_PART.sub(b"", content),
}

_DONE = {
    "delete": "deleted {}",
    "truncate": "truncated {} to its first half",
    "checksum": "falsified the checksums in {}",
    "policy": "misspelt the policy in {}",
    "field": "added an unknown field to {}",
    "empty": "emptied {}",
    "garbage": "wrote garbage into {}",
    "space": "added white space to {}",
    "old checksum": "falsified the checksum for earlier releases in {}",
    "old policy": "misspelt the policy for earlier releases in {}",
    "data": "changed the data in {} but not its checksum",
    "data checksum": "falsified the checksum of the data in {}",
    "no data": "removed the data from {}",
}
"""Descriptions of the edits."""
