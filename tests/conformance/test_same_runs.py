"""Runs in several releases of which those that are the same are played once."""

from __future__ import annotations

import inspect
import random
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from builders.targets import target_of
from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.harness_run import HarnessRun
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.run import reference
from numaproof.conformance.judging import entitlement
from numaproof.conformance.judging.sides import KUBELET
from numaproof.conformance.requirements import Registry
from numaproof.conformance.same_runs import NotingInProcess, SameRuns, said
from numaproof.protocol.releases import RELEASES
from numaproof.reference.cpu.assignment import Assignment
from numaproof.reference.departures import formats, releases
from numaproof.reference.departures.departure import Change

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.implementation import InProcess
    from numaproof.conformance.execution.runner import SelectedCase
    from numaproof.protocol.events import CaseFinished

    MakeCase = Callable[[str], Case]

STATIC = 'config: {cpuManagerPolicy: static, kubeReserved: {cpu: "1"}}\n'
GIVES_TWO = STATIC + (
    "steps: [{admit: {pod: a, containers: {c: {limits: {cpu: 2, memory: 1Gi}}}},"
    ' expect: {containers: {c: {exclusive: "2-3"}}}}]'
)

BAD = STATIC + "steps: [{state: {}, expect: {shared: 3}}]"

BEFORE, SINCE = '{kubernetes: "< 1.33"}', '{kubernetes: ">= 1.33", anything: true}'


class Played:
    """Case runs in all releases, with and without those that are the same."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._noting, self._plain = NotingInProcess(KUBELET), reference(KUBELET)
        self._number = 0

    def scratch(self) -> Path:
        self._number += 1
        return self._folder / str(self._number)

    def run(self, implementation: InProcess, release: str) -> HarnessRun:
        registry = Registry(documents={}, requirements=())
        return HarnessRun(target_of(implementation, kubernetes=release), registry, "", "")

    def shared(
        self, cases: Sequence[Case], machine: ProfileMachine
    ) -> Iterator[tuple[SelectedCase, str, CaseFinished]]:
        """What each case on a machine comes to in each release."""
        for case in cases:
            same = SameRuns(self._noting, RELEASES)
            for release in RELEASES:
                run = self.run(self._noting, release)
                for one in runner.select([case], [machine], run.target):
                    yield one, release, same.run_case(one, run, self.scratch())

    def really(self, one: SelectedCase, release: str) -> CaseFinished:
        """What it comes to when it is played, with its calls."""
        run = self.run(self._plain, release)
        return runner.run_case(one, run, self.scratch(), every_call=True)


def calls(finished: CaseFinished) -> list[Any]:
    """What was called and answered, whatever the release."""
    return [
        ({**call.args, "kubernetes": ""}, plain(call.answer), call.before)
        for call in finished.steps
    ]


def plain(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer with what its files say instead of their texts."""
    files = answer.get("files") or {}
    return {**answer, "files": {name: said(name, text) for name, text in files.items()}}


def compare(folder: Path, names: Sequence[str], count: int, seed: int) -> int:
    """Plays a sample of cases; how many runs were the same as in another release."""
    played, shared = Played(folder), 0
    for name in names:
        machine = ProfileMachine(fakesys.load_profile(name), folder)
        sample = random.Random(seed).sample(loading.bundled_cases(), count)  # noqa: S311
        for one, release, found in played.shared(sample, machine):
            really = played.really(one, release)
            assert found.outcome == really.outcome, (one.case.id, name, release)
            assert found.needs == really.needs
            assert found.reproduce == really.reproduce
            if found.same_as:
                shared += 1
                assert found.outcome == "pass"
                assert calls(played.really(one, found.same_as)) == calls(really)
    return shared


def test_what_is_the_same_gives_the_same_answers_when_it_is_played(tmp_path: Path) -> None:
    assert compare(tmp_path, ["laptop-4c8t"], 100, seed=1) > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_so_it_does_on_other_machines(tmp_path: Path, seed: int) -> None:
    names = ("xeon-gold-6230-2s-snc2", "offline-half-cores", "hugepages-2s", "vm-cpuless-node")
    assert compare(tmp_path, names, 150, seed) > 500


def outcomes(folder: Path, case: Case, machine: ProfileMachine) -> dict[str, tuple[str, str]]:
    found = Played(folder).shared([case], machine)
    return {release: (one.outcome, one.same_as) for _, release, one in found}


def test_a_run_is_played_once_for_the_releases_that_do_not_differ_in_it(
    tmp_path: Path, make_case: MakeCase, laptop: ProfileMachine
) -> None:
    found = outcomes(tmp_path, make_case(GIVES_TWO), laptop)
    assert {outcome for outcome, _ in found.values()} == {"pass"}
    same = ["", "1.30", "", "1.32", "1.32", "1.32", "1.32", "1.32"]
    assert [one for _, one in found.values()] == same


def test_an_option_that_grew_up_is_another_one(
    tmp_path: Path, make_case: MakeCase, laptop: ProfileMachine
) -> None:
    options = 'cpuManagerPolicyOptions: {full-pcpus-only: "true"}'
    found = outcomes(tmp_path, make_case(GIVES_TWO.replace("{cpuM", f"{{{options}, cpuM")), laptop)
    assert found["1.33"] == ("pass", "")
    assert found["1.34"] == ("pass", "1.33")


class LastCPUs(Assignment):
    """Wrong in one release."""

    departure = Change(("1.33",), "Takes the last CPUs.")

    def take(self, *args: int) -> int:
        return super().take(*args) << 2


def test_a_departure_of_one_release_is_not_shared_away(
    tmp_path: Path, make_case: MakeCase, laptop: ProfileMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = releases.TABLE["1.33"]
    changed = replace(changed, departures=(*changed.departures, LastCPUs))
    monkeypatch.setattr(releases, "TABLE", MappingProxyType({**releases.TABLE, "1.33": changed}))
    found = outcomes(tmp_path, make_case(GIVES_TWO), laptop)
    assert found["1.32"] == ("pass", "")
    assert found["1.33"] == ("fail", "")
    assert found["1.34"] == ("pass", "1.32")


class Forgetful:
    """A format that forgets the shared pool."""

    def write(self, content: dict[str, Any]) -> bytes:
        return formats.CPU_1_30.written.write({**content, "defaultCpuSet": ""})


def test_a_file_of_one_release_that_says_something_else_is_not_shared_away(
    tmp_path: Path, make_case: MakeCase, laptop: ProfileMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: Any = Forgetful()
    changed = releases.TABLE["1.33"]
    changed = replace(changed, cpu_files=replace(changed.cpu_files, written=written))
    monkeypatch.setattr(releases, "TABLE", MappingProxyType({**releases.TABLE, "1.33": changed}))
    found = outcomes(tmp_path, make_case(GIVES_TWO), laptop)
    assert found["1.33"] == ("fail", "")
    assert found["1.34"] == ("pass", "1.32")


class Above(Assignment):
    """Reaches what differs past the class that notes it."""

    departure = Change(RELEASES, "Asks the rule itself.")

    def take(self, *_: int) -> int:
        assert super().large_units()
        return 0b1100


class SocketsOnly(Assignment):
    """Has other large units."""

    departure = Change(("1.33",), "Takes no nodes.")

    def large_units(self) -> Any:
        return [self.whole_sockets]


def test_what_is_reached_by_way_of_a_class_above_counts_too(
    tmp_path: Path, make_case: MakeCase, laptop: ProfileMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = {
        name: replace(
            one,
            departures=(*one.departures, *[SocketsOnly] * (name == "1.33"), Above),
        )
        for name, one in releases.TABLE.items()
    }
    monkeypatch.setattr(releases, "TABLE", MappingProxyType(table))
    case = make_case(GIVES_TWO.replace('kubeReserved: {cpu: "1"}', 'reservedSystemCPUs: "0"'))
    found = outcomes(tmp_path, case, laptop)
    assert found["1.33"] == ("pass", "")
    assert found["1.34"] == ("pass", "1.32")


def test_a_run_that_fails_is_played_in_each_release(
    tmp_path: Path, make_case: MakeCase, laptop: ProfileMachine
) -> None:
    found = outcomes(
        tmp_path, make_case(STATIC + "steps: [{state: {}, expect: {shared: 3}}]"), laptop
    )
    assert set(found.values()) == {("fail", "")}


@pytest.mark.parametrize(
    "steps",
    [
        'steps: [{start: {kubernetes: "1.35"}}]',
        f"steps: [{{state: {{}}, expect: [{BEFORE}, {SINCE}]}}]",
        'steps: [{start: {flags: ["--cpu-manager-policy=static"]}}]',
    ],
)
def test_what_names_a_release_is_played_in_each(
    steps: str, tmp_path: Path, make_case: MakeCase, laptop: ProfileMachine
) -> None:
    found = outcomes(tmp_path, make_case(STATIC + steps), laptop)
    assert found["1.33"] == ("pass", "")


def test_all_that_entitles_by_release_is_compared() -> None:
    found = {
        function
        for _, function in inspect.getmembers(entitlement, inspect.isfunction)
        if "kubernetes" in inspect.signature(function).parameters
    }
    assert found == {*entitlement._RULES}
