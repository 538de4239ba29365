"""Which machines a case runs on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from numaproof import fakesys
from numaproof.conformance.cases.loading import CaseError
from numaproof.conformance.cases.schema import Case, Machines
from numaproof.conformance.execution.machines import GivenMachine, ProfileMachine, matches, select
from numaproof.folders import trees

if TYPE_CHECKING:
    from numaproof.protocol.machine import MachineInfo


def _case(machines: Machines) -> Case:
    return Case("one", "One", (), (), machines=machines)


@pytest.mark.parametrize(
    ("wanted", "chosen"),
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
def test_machines_are_chosen_by_name_property_and_condition(
    laptop: ProfileMachine, wanted: Machines, *, chosen: bool
) -> None:
    assert matches(laptop, _case(wanted)) is chosen


def test_a_condition_that_is_not_in_the_language_is_an_error(laptop: ProfileMachine) -> None:
    with pytest.raises(CaseError, match="threads"):
        matches(laptop, _case(Machines(where="threads > 1")))
    with pytest.raises(CaseError, match="value about 2"):
        matches(laptop, _case(Machines(smt="about 2")))


def test_a_machine_that_cannot_be_discovered_is_chosen_by_name_alone(
    laptop: ProfileMachine,
) -> None:
    profile = msgspec.structs.replace(laptop.profile, lacks=("proc/meminfo",))
    broken = ProfileMachine(profile, laptop.folder)
    assert broken.info is None
    assert not matches(broken, _case(Machines()))
    assert not matches(broken, _case(Machines(cpus=">= 0")))
    assert matches(broken, _case(Machines(names=("laptop-*",))))


def test_a_machine_without_cpus_is_chosen_by_name_alone() -> None:
    empty = ProfileMachine(fakesys.load_profile("arm64-no-core-ids"), Path("/nonexistent"))
    assert not matches(empty, _case(Machines()))
    assert matches(empty, _case(Machines(names=("arm64-*",))))


def test_the_order_given_is_kept(laptop: ProfileMachine) -> None:
    other = ProfileMachine(fakesys.load_profile("vm-1-cpu"), Path("/nonexistent"))
    case = Case("one", "One", (), ())
    assert select([other, laptop], case) == [other, laptop]
    eight = msgspec.structs.replace(case, machines=Machines(cpus=8))
    assert select([other, laptop], eight) == [laptop]


def test_the_tree_is_written_once_something_needs_its_files(tmp_path: Path) -> None:
    machine = ProfileMachine(fakesys.load_profile("vm-1-cpu"), tmp_path)
    assert machine.info is not None
    assert list(tmp_path.iterdir()) == []
    held = trees.opened(machine.tree.held())
    assert (held / "proc/cpuinfo").read_bytes()
    assert list(tmp_path.iterdir()) == []
    assert (machine.tree.directory() / "proc" / "cpuinfo").is_file()
    assert machine.tree.directory() == tmp_path / "vm-1-cpu"


def test_a_given_machine_has_facts_and_no_tree(info: MachineInfo) -> None:
    given = GivenMachine(info)
    assert given.facts.properties["cpus"] == 8
    assert given.tree is None
