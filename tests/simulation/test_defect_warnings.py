"""Every answer changed by a named defect says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from builders import machines, seeding
from numaproof.cli.simulate_view import answer
from numaproof.cli.upgrade_view import Setting, upgrade_lines
from numaproof.protocol import codec
from numaproof.reference.deviations.defects import DEFECTS
from numaproof.reports import answers
from numaproof.reports.console import as_plain
from numaproof.simulation import checkpoints, configuration_check
from numaproof.simulation.admission import Question
from numaproof.simulation.upgrades import upgrade
from numaproof.simulation.what_ifs import simulate

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.deviations.deviation import Defect
    from numaproof.simulation.admission import CheckedSimulation

LEAVES = "no pod leaves the node that is simulated, so none comes back with its uid"
RESTARTS = "the kubelet that is simulated starts once, on a node without files"

OUT_OF_REACH = {
    "reusable-cpus-counted-twice": LEAVES,
    "reusable-memory-outlives-pod": LEAVES,
    "quota-limits-exclusive-cpus": "the answer does not include the CFS quota",
    "cpu-metrics-drift": "the answer does not include metrics",
    "full-pcpus-only-refuses-own-pod": RESTARTS,
    "strict-reservation-empty-pool-refused": RESTARTS,
    "ended-init-served-again": RESTARTS,
    "ended-init-devices-demanded": "only a kubelet that restarts alone shows it",
    "pod-level-cpus-taken-anew": RESTARTS,
    "group-compared-by-node": RESTARTS,
    "cores-with-equal-ids-joined": "the machine is given, not discovered",
}
"""The defects that no simulation can show, and the reasons."""

ANSWERED = [one for one in DEFECTS if one.answers]


def closest() -> seeding.Asked:
    """A pod on two nodes of a machine with gaps between node ids, which affect distances."""
    rows = {
        0: (10, 20, 11, 31, 30),
        1: (20, 10, 30, 11, 30),
        3: (11, 30, 10, 20, 30),
        4: (30, 11, 20, 10, 30),
        6: (30, 30, 30, 30, 10),
    }
    machine = machines.regular(nodes=5, cores=2, threads=1)
    nodes = [
        msgspec.structs.replace(node, node_id=number, distances=row)
        for node, (number, row) in zip(machine.topology or (), rows.items(), strict=True)
    ]
    config = {
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": "8-9",  # those of node 6, which make kubelets panic
        "topologyManagerPolicy": "best-effort",
        "topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"},
    }
    made = msgspec.structs.replace(machine, topology=tuple(nodes))
    return Question(made, config, "1.37"), (seeding.guaranteed_pod("pod", 3),)


def simulate_defect(defect: Defect, folder: Path) -> tuple[Question, CheckedSimulation]:
    """A simulation with answers changed by a defect."""
    asked = (
        [closest()]
        if defect.name == "closest-nodes-by-position"
        else seeding.questions(defect, folder / "case")
    )
    for number, (question, pods) in enumerate(asked):
        place = folder / str(number)
        place.mkdir()
        found = simulate(question, pods, place)
        if defect.name in names(found):
            return question, found
    pytest.fail(f"no simulation shows {defect.name}: give it one, or a reason in OUT_OF_REACH")


def names(simulation: CheckedSimulation) -> set[str]:
    return {each.name for one in simulation.warnings for each in one.defects}


@pytest.mark.parametrize(
    "defect",
    [one for one in ANSWERED if one.name not in OUT_OF_REACH],
    ids=lambda defect: defect.name,
)
def test_an_answer_changed_by_a_defect_names_it(defect: Defect, tmp_path: Path) -> None:
    question, found = simulate_defect(defect, tmp_path)
    report = answer(found, question, "machine")
    parts = answers.parts(report, 100)
    text = "\n".join(as_plain(part) for part in parts)
    for shown in (text, answers.html(report), codec.encode(found).decode()):
        assert f"docs/findings.md#{defect.name}" in shown
        assert defect.issue in shown
    one = next(one for one in found.warnings if defect.name in {d.name for d in one.defects})
    assert one.kubelet != one.documented_answer


def test_the_list_of_unreachable_defects_is_exact() -> None:
    assert OUT_OF_REACH.keys() <= {one.name for one in ANSWERED}


@pytest.mark.parametrize(
    "defect",
    [one for one in ANSWERED if OUT_OF_REACH.get(one.name) == RESTARTS],
    ids=lambda o: o.name,
)
def test_an_upgrade_changed_by_a_defect_names_it(defect: Defect, tmp_path: Path) -> None:
    (tmp_path / "case").mkdir()
    question, pods = seeding.upgrades(defect, tmp_path / "case")
    (tmp_path / "play").mkdir()
    found = upgrade(question, pods, tmp_path / "play")
    assert defect.name in {each.name for one in found.warnings for each in one.defects}
    text = "\n".join(
        str(line) for line in upgrade_lines(found, Setting("machine", None, True, True))
    )
    assert f"docs/findings.md#{defect.name}" in text


@pytest.mark.parametrize(
    "name", ["strict-reservation-empty-pool-refused", "group-compared-by-node"]
)
def test_a_file_refused_by_a_defect_is_called_valid(name: str, tmp_path: Path) -> None:
    defect = next(one for one in ANSWERED if one.name == name)
    asked, _ = seeding.upgrades(defect, tmp_path)
    question = Question(asked.machine, asked.config, asked.after)
    file = "memory_manager_state" if "group" in name else "cpu_manager_state"
    assert asked.files is not None
    (tmp_path / "check").mkdir()
    checkpoint = checkpoints.read(asked.files[file], file)
    found = checkpoints.judge(question, checkpoint, tmp_path / "check")
    (warning,) = found.warnings
    assert [one.name for one in warning.defects] == [name]
    assert (warning.kubelet, warning.documented_answer) == (found.refusal, None)
    assert found.refusal is not None


@pytest.mark.parametrize("name", ["reservation-by-best-fit", "reservation-beyond-node-wraps"])
def test_configuration_findings_name_their_defect(name: str, tmp_path: Path) -> None:
    defect = next(one for one in ANSWERED if one.name == name)
    question, _ = next(seeding.questions(defect, tmp_path))
    verdict = configuration_check.judge(question)
    notes = configuration_check.shaped_findings(question, verdict)
    assert {each.name for note in notes for each in note.defects} == {name}


@pytest.mark.parametrize("name", ["reservation-by-best-fit", "reservation-beyond-node-wraps"])
def test_consequences_of_a_start_with_a_defect_say_so(name: str, tmp_path: Path) -> None:
    defect = next(one for one in ANSWERED if one.name == name)
    question, found = simulate_defect(defect, tmp_path)
    if len(found.warnings) == 1:
        pods = tuple(seeding.guaranteed_pod(f"pod-{n}", 1) for n in range(2))
        (tmp_path / "more").mkdir()
        found = simulate(question, pods, tmp_path / "more")
    start, *others = found.warnings
    assert (start.part, start.follows) == ("start", False)
    assert others
    assert all(one.follows for one in others)


STATIC = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
ALIGNED = {**STATIC, "topologyManagerPolicy": "best-effort"}
CRASHES: dict[str, tuple[MachineInfo, dict[str, Any]]] = {
    "hints-panic-on-node-id": (machines.regular(first_node=64), ALIGNED),
    "closest-nodes-panic-on-node-id": (
        machines.with_node(machines.regular(nodes=3), 2, node_id=5),
        {**ALIGNED, "topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"}},
    ),
    "distribute-endless-loop": (
        machines.regular(nodes=2),
        {
            **STATIC,
            "cpuManagerPolicyOptions": {
                "full-pcpus-only": "true",
                "distribute-cpus-across-numa": "true",
            },
            "featureGates": {"CPUManagerPolicyAlphaOptions": True},
        },
    ),
    "merge-of-all-combinations": (
        machines.regular(nodes=9, cores=1),
        {**ALIGNED, "topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "9"}},
    ),
}


@pytest.mark.parametrize("name", CRASHES)
def test_settings_that_can_crash_the_kubelet_are_warnings(name: str, tmp_path: Path) -> None:
    question = Question(*CRASHES[name], "1.37")
    found = simulate(question, (), tmp_path)
    assert [one.defect.name for one in found.crashes] == [name]
    report = answer(found, question, "machine")
    assert "can panic or hang" in report.title
    assert f"docs/findings.md#{name}" in "\n".join(map(as_plain, answers.parts(report, 100)))
    warned = {one.message for one in configuration_check.judge(question).findings}
    assert {one.message for one in found.crashes} <= warned


def test_a_kubelet_without_defects_can_not_crash(tmp_path: Path) -> None:
    question = Question(*CRASHES["hints-panic-on-node-id"], "1.37", follows_docs=True)
    assert not simulate(question, (), tmp_path).crashes


def test_other_reasons_for_the_same_answer_are_no_warning(tmp_path: Path) -> None:
    config = {
        **STATIC,
        "reservedSystemCPUs": "0-1",
        "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
        "topologyManagerPolicy": "single-numa-node",
        "maxPods": 1,
    }
    machine = machines.discover_profile("xeon-gold-6230-2s")
    pods = tuple(seeding.guaranteed_pod(f"p{size}", size) for size in (3, 2, 4))
    found = simulate(Question(machine, config, "1.37"), pods, tmp_path)
    reasons = [one.refusal and one.refusal.reason for one in found.pods]
    assert reasons == ["SMTAlignmentError", None, "OutOfpods"]
    assert not found.warnings
