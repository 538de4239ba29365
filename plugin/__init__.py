"""The pytest plugin: numaproof from a project's own test suite.

pytest loads this module in every run, so it imports nothing but pytest; the rest of the project
is imported by the first test that uses a fixture or the marker. `docs/fuzzing.md` shows how to
use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.conformance.execution.run import Target
    from numaproof.plugin.checking import Checker

OPTIONS = {
    "implementation": "Program that speaks the protocol, as a command; {rootdir} is pytest's.",
    "kubernetes": "Release to behave as; the newest that the implementation claims.",
    "level": "How much is compared; what the implementation claims.",
    "timeout": "Time that one call of the program may take, such as 30s.",
}
"""Options ``--numaproof-NAME``, and keys ``numaproof_NAME`` of pytest's configuration file."""

MARKER = (
    "numaproof(select='*', machine='*', cases=()): the test is run for each case of the tables"
    " whose id matches, on the first machine that it applies to; `cases` are files of your own"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `OPTIONS`, on the command line and in the configuration file."""
    group = parser.getgroup("numaproof", "conformance of Kubernetes node resource managers")
    for name, what in OPTIONS.items():
        group.addoption(f"--numaproof-{name}", metavar=name.upper(), help=what)
        parser.addini(f"numaproof_{name}", what)


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker."""
    config.addinivalue_line("markers", MARKER)


def option(config: pytest.Config, name: str) -> str | None:
    """What the command line says of an option, else what the configuration file says."""
    said: str | None = config.getoption(f"numaproof_{name}") or config.getini(f"numaproof_{name}")
    return said or None


@pytest.fixture(scope="session")
def numaproof_implementation(pytestconfig: pytest.Config) -> str:
    """The command of the program that is tested; a project may say it in a fixture of its own."""
    said = option(pytestconfig, "implementation")
    if said is None:
        pytest.fail(
            "there is nothing to test: say numaproof_implementation in pytest's configuration"
            " file, or --numaproof-implementation, or write a fixture of that name",
            pytrace=False,
        )
    return said.replace("{rootdir}", str(pytestconfig.rootpath))


@pytest.fixture(scope="session")
def numaproof_target(
    pytestconfig: pytest.Config, numaproof_implementation: str
) -> Iterator[Target]:
    """The program, started and past its handshake; it ends with the session."""
    from numaproof.plugin.opening import opened  # noqa: PLC0415 - costs nothing until it is used

    options = {name: option(pytestconfig, name) for name in OPTIONS if name != "implementation"}
    with opened(numaproof_implementation, **options) as target:
        yield target


@pytest.fixture(scope="session")
def numaproof(numaproof_target: Target) -> Checker:
    """Plays scenarios and cases on the program, and fails the test where something is wrong."""
    from numaproof.plugin.checking import Checker  # noqa: PLC0415 - likewise

    return Checker(numaproof_target)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes a test for each case that the marker selects."""
    if "numaproof_case" not in metafunc.fixturenames:
        return
    from numaproof.plugin.choosing import select, test_id  # noqa: PLC0415 - likewise

    marker = metafunc.definition.get_closest_marker("numaproof")
    said = dict(marker.kwargs) if marker else {}
    chosen = select(said, metafunc.definition.path.parent, metafunc.config)
    metafunc.parametrize("numaproof_case", chosen, ids=[test_id(one) for one in chosen])
