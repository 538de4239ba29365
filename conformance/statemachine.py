"""A Hypothesis state machine that drives a node through admissions, removals and restarts.

Its rules look at the model alone (which pods were offered, which configuration was chosen) and
never at an answer, so that the same draws make the same calls against any implementation with
the same claims. Every rule makes a step of the form that cases have; the player judges it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from numaproof.conformance import strategies
from numaproof.conformance.cases import (
    HintsStep,
    NoArguments,
    RemoveStep,
    StartStep,
    Step,
    TamperStep,
)
from numaproof.conformance.facts import Facts

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.conformance.cases import PodSpec
    from numaproof.conformance.claims import Claims
    from numaproof.conformance.fuzz import FuzzPlaying
    from numaproof.protocol.machine import MachineInfo
    from numaproof.protocol.messages import KubeletConfiguration

_TAMPERINGS = ("truncate", "checksum", "policy", "field", "delete", "empty", "garbage", "space")


def _claimed(operation: str) -> Callable[[NodeMachine], bool]:
    return lambda machine: machine.claims.has(operation)


class NodeMachine(RuleBasedStateMachine):
    """One node's life, within what an implementation claims.

    Subclasses give `claims`, and `open_playing`, which says what is tested and how.
    """

    claims: Claims
    open_playing: Callable[[MachineInfo], FuzzPlaying]

    def __init__(self) -> None:
        super().__init__()
        self.playing: FuzzPlaying | None = None
        self.offered: list[PodSpec] = []
        self.config: KubeletConfiguration = {}

    @initialize(data=st.data())
    def boot(self, data: st.DataObject) -> None:
        """Chooses a machine and a configuration and starts the managers."""
        machine = data.draw(strategies.machines(), label="machine")
        self.facts = Facts(machine)
        self.playing = self.open_playing(machine)
        self._start(data)

    @precondition(_claimed("admit"))
    @rule(data=st.data())
    def admit(self, data: st.DataObject) -> None:
        """Offers a new pod."""
        pod = data.draw(strategies.pods(self.facts, f"pod{len(self.offered)}"), label="pod")
        self.offered.append(pod)
        self._play(Step(admit=pod, expect="anything"))

    @precondition(lambda self: self.offered)
    @rule(data=st.data())
    def admit_again(self, data: st.DataObject) -> None:
        """Offers a pod that was offered before."""
        self._play(Step(admit=self._choose(data).pod, expect="anything"))

    @precondition(_claimed("remove"))
    @precondition(lambda self: self.offered)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """Ends a pod."""
        self._play(Step(remove=RemoveStep(self._choose(data).pod), expect="anything"))

    @precondition(_claimed("remove"))
    @precondition(lambda self: any(pod.init for pod in self.offered))
    @rule(data=st.data())
    def end_init_container(self, data: st.DataObject) -> None:
        """Ends an init container; those that restart end with their pod only."""
        pod = data.draw(st.sampled_from([pod for pod in self.offered if pod.init]), label="pod")
        passing = [name for name, spec in pod.init.items() if not spec.restartPolicy]
        if passing:
            name = data.draw(st.sampled_from(passing), label="container")
            self._play(Step(remove=RemoveStep(pod.pod, name), expect="anything"))

    @precondition(_claimed("hints"))
    @rule(data=st.data())
    def ask_hints(self, data: st.DataObject) -> None:
        """Asks for the hints of a pod that is not on the node."""
        pod = data.draw(strategies.pods(self.facts, "asked"), label="pod")
        container = data.draw(
            st.sampled_from([None, *pod.init, *pod.containers]), label="container"
        )
        self._play(Step(hints=HintsStep(pod, container), expect="anything"))

    @precondition(_claimed("reconcile"))
    @rule()
    def reconcile(self) -> None:
        """Makes one pass of the reconcile loop."""
        self._play(Step(reconcile=NoArguments(), expect="anything"))

    @rule(data=st.data())
    def restart(self, data: st.DataObject) -> None:
        """Restarts the managers, with the same or another configuration."""
        same = data.draw(st.sampled_from((True, True, True, False)), label="same configuration")
        self._start(None if same else data)

    @rule(
        data=st.data(),
        file=st.sampled_from(("cpu_manager_state", "memory_manager_state")),
        how=st.sampled_from(_TAMPERINGS),
    )
    def damage_checkpoint(self, data: st.DataObject, file: Any, how: Any) -> None:
        """Changes a checkpoint file by hand and restarts; often it is deleted after that."""
        self._play(Step(tamper=TamperStep(file, how), expect="anything"))
        self.restart(data)
        if data.draw(st.sampled_from((True, True, False)), label="delete it"):
            self._play(Step(tamper=TamperStep(file, "delete"), expect="anything"))
            self._start(None)

    def _start(self, data: st.DataObject | None) -> None:
        if data is not None:
            assert self.playing is not None
            chosen = strategies.kubelet_configurations(self.facts, self.claims)
            self.config = data.draw(chosen, label="configuration")
        self._play(Step(start=StartStep(config=self.config), expect="anything"))

    def _choose(self, data: st.DataObject) -> PodSpec:
        return data.draw(st.sampled_from(self.offered), label="pod")

    def _play(self, step: Step) -> None:
        assert self.playing is not None
        self.playing.step(step)

    def teardown(self) -> None:
        """Leaves nothing of this example behind."""
        if self.playing is not None:
            self.playing.close()
