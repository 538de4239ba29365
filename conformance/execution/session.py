"""A session with one implementation: the calls, their answers and the pods on the node.

The session knows what the harness did (which pods are on the node, which configuration is in force)
and nothing of how an implementation decides. It records every call in plain values, so that the
call can be shown, saved and repeated.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, get_args

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
from numaproof.conformance.judging.invariants.view import View, arrivals, find_readmitted_pods
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
    """One call and its answer, with what was found wrong about it.

    `before` says in sentences what the harness did to the node since the call before, `needs` which
    claims the call needs.
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

    With an `oracle`, every call goes to the reference too; answers that differ at `level` are a
    problem of the call.

    Attributes:
        capabilities: what may be called.
        shadow_oracle: compares above `level`, where the oracle does not, and finds no problems.
        agreed_level: the highest level at which no answer has differed.
        pods: manifests of the pods on the node, by uid, in the order of their admission.
        ended_containers: names of the containers that have ended, by pod uid.
        config: the configuration of the last start.
        start_answer: the answer to the last start, None when it was refused or never made.
        devices: what the device plugins reported last.
        from_tree: whether starts discover the machine in its tree, where discovery is claimed.
        tell: what starts ask to be told of.
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
    config: messages.KubeletConfiguration = field(default_factory=dict)
    start_answer: messages.Started | None = None
    devices: tuple[messages.DeviceResource, ...] = ()
    from_tree: bool = False
    tell: tuple[messages.Told, ...] = ()
    calls: list[Call] = field(default_factory=list)
    _needed_claims: dict[str, None] = field(default_factory=dict)
    _earlier: EarlierStart | None = None
    _notes: list[str] = field(default_factory=list)

    def require(self, *claims: str) -> None:
        """Notes the claims that come next.

        Raises:
            NotSupportedError: the implementation does not make one of them.
        """
        self._needed_claims.update(dict.fromkeys(claims))
        self.capabilities.require(claims)

    @property
    def needed_claims(self) -> tuple[str, ...]:
        """The claims that came up so far, in order; the last ones may be missing."""
        return tuple(self._needed_claims)

    @property
    def missing_claim(self) -> str:
        """The first claim that was needed and is not made; empty if there is none."""
        return next((one for one in self.needed_claims if one not in self.capabilities.claims), "")

    @property
    def declined_claims(self) -> tuple[str, ...]:
        """The claims that only calls needed which were answered ``unsupported``."""
        needs: dict[bool, dict[str, None]] = {True: {}, False: {}}
        for call in self.calls:
            if call.answer is not None:
                declined = isinstance(call.answer, messages.Unsupported)
                needs[declined] |= dict.fromkeys(call.needs)
        return tuple(need for need in needs[True] if need not in needs[False])

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Makes a call and records it.

        Raises:
            NotSupportedError: it needs what the implementation lacks, and was not made.
            ImplementationFailure: there was no answer; the call is recorded without one, unless
                the program failed after an answer that it had given before.
        """
        needed = needs.of_call(operation, args, self.kubernetes, self.machine, self._earlier)
        call = Call(operation, args, before=tuple(self._notes), needs=tuple(needed))
        # Without discovery, it would be told of the machine.
        spared = {*_DISCOVERY} if self.from_tree and operation == "start" else set()
        self.require(*(need for need in call.needs if need not in spared))
        self._notes.clear()
        self.calls.append(call)
        try:
            call.answer = self.implementation.call(operation, args)
        except ImplementationFailure as failure:
            if failure.after_answer and len(self.calls) > 1:
                self.calls.pop()  # the call before it is to blame
            raise
        if self._is_process_backed:
            # At once: what follows in it is read and written by the program, and by the reference.
            self.check_state()
        answer = self.normal(call.answer)
        if self.oracle:
            found = self.oracle.disagreement(operation, args, answer)
            call.problems += [found] if found else []
        self._probe_higher_level(operation, args, answer)
        return call.answer

    @cached_property
    def _is_process_backed(self) -> bool:
        """Whether it is a program; to ask that at every call takes as long as many an answer."""
        return isinstance(self.implementation, ProcessBacked)

    def _probe_higher_level(
        self, operation: str, args: messages.Args, answer: messages.Answer
    ) -> None:
        """Lowers the level at which nothing differed so far, but not below the claimed one."""
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
            ValueError: there is none.
        """
        if self.root is None:
            raise ValueError("there is no tree of this machine to discover")
        return str(self.root())

    def normal(self, answer: messages.Answer) -> messages.Answer:
        """An answer with the state directory written as `STATE_DIR`."""
        return without_path(answer, self.state_dir.path)

    def tamper(self, file: str, how: str, text: str) -> None:
        """Changes a checkpoint file by hand, the oracle's too.

        Raises:
            NotSupportedError: the implementation does not keep the kubelet's files.
            SpoiledState: there is no file of this name, but something else.
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

    def check_state(self) -> None:
        """Checks the state directory, apart from what is in its files.

        Raises:
            SpoiledState: it is gone, unreadable, something else or overfull, or a checkpoint is no
                file.
        """
        with _state_errors_reported():
            self.state_dir.check(_CHECKPOINTS)

    def note(self, sentence: str) -> None:
        """Records what the harness did to the node, for the story of a failure."""
        self._notes.append(sentence)

    def change_release(self, kubernetes: str) -> None:
        """Has the next start be one of another release, on what this one left behind.

        Raises:
            NotSupportedError: the implementation does not claim that release.
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
    ) -> messages.Answer:
        """Starts or restarts the managers with the pods that are on the node.

        They are not admitted again here. With `from_tree` it needs discovery.
        """
        if from_tree:
            self.require(*_DISCOVERY)
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
        )
        answer = self.call("start", args)
        self.config = needs.in_force(config, flags, self.kubernetes)
        self.start_answer = answer if isinstance(answer, messages.Started) else None
        if self.start_answer:  # a start that was refused has left nothing behind
            self._earlier = EarlierStart(self.config, self.machine)
        return answer

    def admit(self, pod: messages.Pod) -> messages.Answer:
        """Offers a pod to the node, where it stays if admitted.

        Containers that ended do not come back when their pod, already on the node, is offered
        again. A pod that the implementation does not support is not on the node.
        """
        answer = self.call("admit", messages.AdmitArgs(pod))
        uid = pod["metadata"]["uid"]
        if uid not in self.pods:
            self.ended_containers.pop(uid, None)
        if isinstance(answer, messages.Admitted):
            self.pods[uid] = pod
        else:
            self.pods.pop(uid, None)
        return answer

    def remove(self, uid: str, container: str | None = None) -> messages.Answer:
        """Reports that a pod, or one container of it, has ended.

        It is still there for an implementation that does not support that.
        """
        answer = self.call("remove", messages.RemoveArgs(uid, container))
        if isinstance(answer, messages.Unsupported):
            return answer
        if container is None:
            self.pods.pop(uid, None)
            self.ended_containers.pop(uid, None)
        else:
            self.ended_containers[uid] = self.ended_containers.get(uid, frozenset()) | {container}
        return answer

    def report_devices(self, devices: tuple[messages.DeviceResource, ...]) -> messages.Answer:
        """Reports new lists of devices, as device plugins do.

        Those reported before stay in force for an implementation that does not support it.
        """
        answer = self.call("devices", messages.DevicesArgs(devices))
        if not isinstance(answer, messages.Unsupported):
            self.devices = devices
        return answer

    def view(self, facts: Facts, state: messages.State) -> View:
        """What invariants see of the node, given its state as it was just answered.

        Args:
            facts: of the machine as it is now.
            state: the answer to `state`, after a start that was not refused.
        """
        assert self.start_answer is not None
        made = [call.args for call in self.calls]
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
            readmitted_pods=find_readmitted_pods(made),
        )

    def reported_call(
        self, call: Call, expected: dict[str, Any] | None = None
    ) -> events.ReportedCall:
        """A call as reports show it, with the answer that was expected where one was."""
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
        """A message as plain values, with the state directory and the tree replaced.

        What is shown, saved or compared must not vary between runs.
        """
        plain = replace_text(codec.to_plain(value), str(self.state_dir.path), STATE_DIR)
        if isinstance(value, messages.StartArgs | messages.DiscoverArgs) and value.root:
            plain["root"] = TREE
        return truncate(plain)


TREE = "$TREE"
"""Replaces the path of a machine's tree in everything that is shown."""


@contextmanager
def _state_errors_reported() -> Iterator[None]:
    try:
        yield
    except StateError as error:
        raise SpoiledState(error) from None


def tamper(directory: StateDirectory, file: str, how: str, text: str = "") -> bool:
    """Changes a checkpoint file the way a case asks for; see `cases.TamperStep`.

    Returns:
        Whether there was a file to change.

    Raises:
        StateError: there is no file of this name, but something else.
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
    "truncate": "cut {} to its first half",
    "checksum": "made the checksums in {} wrong",
    "policy": "misspelt the policy in {}",
    "field": "added an unknown field to {}",
    "empty": "emptied {}",
    "garbage": "wrote garbage into {}",
    "space": "added white space to {}",
    "old checksum": "made the checksum for earlier releases in {} wrong",
    "old policy": "misspelt the policy for earlier releases in {}",
    "data": "changed the data in {} without its checksum",
    "data checksum": "made the checksum of the data in {} wrong",
    "no data": "took the data out of {}",
}
"""What the harness did to a file, in words."""
