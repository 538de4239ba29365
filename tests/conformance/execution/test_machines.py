"""The machines that a case runs on."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from numaproof import fakesys
from numaproof.conformance.cases.loading import CaseError
from numaproof.conformance.cases.schema import Case, Machines, NoArguments, Step
from numaproof.conformance.execution.machines import ProfileMachine, matches, starts_from_tree
from numaproof.conformance.execution.runner import SelectedCase
from numaproof.workdir import trees


def _case(machines: Machines) -> Case:
    return Case("one", "One", (), (), machines=machines)


@pytest.mark.parametrize(
    ("criteria", "is_chosen"),
    [
        (Machines(), True),
        (Machines(names=("laptop-*",)), True),
        (Machines(names=("xeon-*", "epyc-*")), False),
        (Machines(smt=2, cpus=8), True),
        (Machines(smt=2, cpus=9), False),
        (Machines(cpus=">= 8", sockets="< 2"), True),
        (Machines(cpus="> 8"), False),
        (Machines(uniform=True, dense=True), True),
        (Machines(uniform=False), False),
        (Machines(where="cpus == cores * smt"), True),
        (Machines(where="cpus == cores"), False),
    ],
)
def test_machines_are_selected_by_name_property_and_condition(
    laptop: ProfileMachine, criteria: Machines, *, is_chosen: bool
) -> None:
    assert matches(laptop, _case(criteria)) is is_chosen


def test_a_malformed_condition_is_an_error(laptop: ProfileMachine) -> None:
    with pytest.raises(CaseError, match="threads"):
        matches(laptop, _case(Machines(where="threads > 1")))
    with pytest.raises(CaseError, match="value about 2"):
        matches(laptop, _case(Machines(smt="about 2")))


def test_machines_without_cpus_are_selected_only_by_name(
    laptop: ProfileMachine,
) -> None:
    profile = msgspec.structs.replace(laptop.profile, lacks=("proc/meminfo",))
    broken = ProfileMachine(profile, laptop.folder)
    empty = ProfileMachine(fakesys.load_profile("arm64-no-core-ids"), Path("/nonexistent"))
    assert broken.info is None
    for machine, name in ((broken, "laptop-*"), (empty, "arm64-*")):
        assert not matches(machine, _case(Machines()))
        assert not matches(machine, _case(Machines(cpus=">= 0")))
        assert matches(machine, _case(Machines(names=(name,))))


def test_the_tree_is_written_when_its_files_are_needed(tmp_path: Path) -> None:
    machine = ProfileMachine(fakesys.load_profile("vm-1-cpu"), tmp_path)
    assert machine.info is not None
    assert list(tmp_path.iterdir()) == []
    held = trees.open_root(machine.tree.in_process_path())
    assert (held / "proc/cpuinfo").read_bytes()
    assert list(tmp_path.iterdir()) == []
    assert (machine.tree.directory() / "proc" / "cpuinfo").is_file()
    assert machine.tree.directory() == tmp_path / "vm-1-cpu"


@pytest.fixture
def clusters(tmp_path: Path) -> ProfileMachine:
    return ProfileMachine(fakesys.load_profile("arm64-clusters"), tmp_path)


DISCOVERING = Case("two", "Two", (), (Step(discover=NoArguments()),))


def test_some_machines_run_only_cases_that_discover_or_name_them(clusters: ProfileMachine) -> None:
    assert not matches(clusters, _case(Machines()))
    assert matches(clusters, _case(Machines(names=("arm64-*",))))
    assert matches(clusters, DISCOVERING)


def test_a_tree_that_the_kubelet_misreads_is_only_read_by_cases_about_it(
    clusters: ProfileMachine, laptop: ProfileMachine
) -> None:
    case = Case("one", "One", (), (Step(state=NoArguments()),))
    assert starts_from_tree(laptop, case)
    assert not starts_from_tree(clusters, case)
    cores = [
        sum(len(node.cores or ()) for node in SelectedCase(one, clusters).info.topology or ())
        for one in (case, DISCOVERING)
    ]
    assert cores == [8, 16]
