"""A program that sometimes fails and can be trapped in the middle of a unit, in real processes.

The trap stops the program at its tenth admission and reports the worker's process id. The program
then answers nothing until its worker is gone.
"""

from __future__ import annotations

import os
import selectors
import shlex
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

from builders.targets import target_of
from numaproof import fakesys
from numaproof.campaign.campaign import FailedUnit
from numaproof.campaign.planning import CampaignSpec
from numaproof.campaign.worker import UnitWorker
from numaproof.conformance.cases import loading
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.subprocesses import Subprocess
from numaproof.protocol.campaign import Seeds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numaproof.campaign.worker import UnitResult
    from numaproof.protocol.campaign import Unit

PATIENCE = 300.0

SOURCE = """
import os, sys
from numaproof.protocol import codec, messages
from numaproof.reference.implementation import Reference
folder = sys.argv[1]
def worker():
    # The program's parent is the supervisor that the worker started.
    with open(f"/proc/{os.getppid()}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[1]
reference = Reference()
admissions = 0
for line in sys.stdin.buffer:
    request = codec.decode(line, codec.Request)
    admissions += request.op == "admit"
    if admissions == 5:
        try:
            os.unlink(folder + "/armed")
        except FileNotFoundError:
            pass
        else:
            with open(folder + "/told", "w") as told:
                told.write(f"{worker()}\\n")
            sys.stdin.buffer.read()
            sys.exit()
    answer = reference.call(request.op, codec.decode_args(request))
    if request.op == "merge":
        answer = messages.Fault("boom", "")
    sys.stdout.buffer.write(codec.encode_answer(request.id, answer))
    sys.stdout.flush()
"""


@dataclass(frozen=True)
class Trap:
    """A program, and the folder used to arm it."""

    folder: Path

    @property
    def command(self) -> str:
        """The command of the program."""
        return shlex.join([sys.executable, str(self.folder / "program.py"), str(self.folder)])

    def arm(self) -> None:
        """Stops the program once, at its tenth admission from now on."""
        (self.folder / "armed").touch()

    def wait_for_worker(self) -> int:
        """Waits for the stop; returns the worker's process id."""
        told = os.open(self.folder / "told", os.O_RDWR | os.O_NONBLOCK)
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(told, selectors.EVENT_READ)
                assert selector.select(PATIENCE), "the program was not stopped"
            return int(os.read(told, 100))
        finally:
            os.close(told)


@pytest.fixture(scope="package")
def trap(tmp_path_factory: pytest.TempPathFactory) -> Trap:
    """The trap fixture."""
    folder = tmp_path_factory.mktemp("trap")
    (folder / "program.py").write_text(SOURCE)
    os.mkfifo(folder / "told")
    return Trap(folder)


class Command:
    """`numaproof campaign` with the trap, in its own process group.

    Args:
        trap: the program under test.
        out: the folder of the campaign.
        options: additional options.
    """

    def __init__(self, trap: Trap, out: Path, *options: str) -> None:
        self.out = out
        words = (
            *("campaign", "--implementation", trap.command, "--out", str(out)),
            *("--machine", "laptop-4c8t", "--select", "example-*", "--cases-per-unit", "3"),
            *("--seeds", "0:6", "--seeds-per-unit", "3", "--shrink", "1"),
        )
        # A shell starts background jobs with SIGINT ignored, and these tests may run in one.
        heeding = ("env", "--default-signal=INT")
        self.process = subprocess.Popen(
            [*heeding, sys.executable, "-m", "numaproof", *words, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def wait(self) -> tuple[int, str]:
        """Waits for the end; returns the exit code and the output."""
        written, _ = self.process.communicate(timeout=PATIENCE)
        assert "Traceback" not in written
        return self.process.returncode, written

    def signal(self, number: int) -> None:
        """Sends a signal to the process group, like a terminal."""
        os.killpg(self.process.pid, number)


@pytest.fixture(scope="package")
def undisturbed_run(trap: Trap, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an undisturbed campaign with one worker."""
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    code, written = Command(trap, out, "--workers", "1").wait()
    assert code == 1, written
    return out


@pytest.fixture(scope="package")
def start() -> type[Command]:
    """Starts the command."""
    return Command


def spec(trap: Trap, folder: Path, *, select: str = "example-*", stop: int = 12) -> CampaignSpec:
    """A campaign with a few cases and seeds against the trap's program, in two releases."""
    machines = (ProfileMachine(fakesys.load_profile("laptop-4c8t"), folder / "trees"),)
    words = shlex.split(trap.command)
    with closing(Subprocess(words, PATIENCE)) as program:
        targets = tuple(
            target_of(program, kubernetes=release, command=tuple(words))
            for release in ("1.35", "1.36")
        )
    cases = loading.bundled_cases()
    return CampaignSpec(
        targets=targets,
        cases=cases,
        machines=machines,
        selected_cases=tuple(case for case in cases if fnmatchcase(case.id, select)),
        seeds=Seeds(0, stop),
        cases_per_unit=3,
        seeds_per_unit=5,
        shrinks=1,
        timeout=PATIENCE,
        numaproof=version("numaproof"),
    )


class OneByOne:
    """Runs units in this process, in its own order, some of them twice or never."""

    def __init__(
        self,
        worker: Remembering,
        order: Callable[[list[Unit]], list[Unit]] = list,
        breaks: Callable[[Unit], bool] = lambda _: False,
    ) -> None:
        self._worker = worker
        self._order = order
        self._breaks = breaks

    def do(self, units: Iterator[Unit]) -> Iterator[UnitResult | FailedUnit]:
        """Runs all units."""
        for unit in self._order(list(units)):
            yield FailedUnit(unit, "no") if self._breaks(unit) else self._worker.do(unit)


@pytest.fixture(scope="package")
def campaign_spec(trap: Trap, tmp_path_factory: pytest.TempPathFactory) -> CampaignSpec:
    """The specification; see `CampaignSpec`."""
    return spec(trap, tmp_path_factory.mktemp("machines"))


class Remembering:
    """Runs each unit once and caches its result."""

    def __init__(self, worker: UnitWorker) -> None:
        self._worker = worker
        self._results: dict[Unit, UnitResult] = {}

    def do(self, unit: Unit) -> UnitResult:
        """Returns the unit's result."""
        if unit not in self._results:
            self._results[unit] = self._worker.do(unit)
        return self._results[unit]


@pytest.fixture(scope="package")
def worker(
    campaign_spec: CampaignSpec, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Remembering]:
    """The folder in which units of `campaign_spec` run."""
    with closing(UnitWorker(campaign_spec.job, tmp_path_factory.mktemp("workshop"))) as made:
        yield Remembering(made)


@pytest.fixture(scope="package")
def one_by_one() -> type[OneByOne]:
    """Runs units in this process."""
    return OneByOne
