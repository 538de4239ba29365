"""The pytest plugin, for running numaproof from a project's own test suite.

pytest loads this module in every run, so it imports only pytest; the first test that uses a fixture
or the marker imports the rest. `docs/fuzzing.md` shows how to use it.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.conformance.execution.run import Target
    from numaproof.plugin.checking import Checker

OPTIONS = {
    "implementation": "Command of the program to test; {rootdir} is pytest's root directory.",
    "kubernetes": "Kubernetes release to emulate (default: the newest that the program claims).",
    "level": "Level of comparison (default: the level that the program claims).",
    "baseline": "Which behaviour to expect where the kubelet contradicts its documentation:"
    " documented, kubelet or either (default: `kubelet` at level `kubelet`, otherwise `either`).",
    "timeout": "Time limit for each call of the program (default: 30s).",
    "known-failures": "YAML file of known failures, as for `numaproof check`, relative to pytest's"
    " root directory.",
}
"""Options ``--numaproof-NAME``, and keys ``numaproof_NAME`` in pytest's configuration file.

In keys, ``_`` replaces hyphens.
"""

MARKER = (
    "numaproof(select=(), exclude=(), machine='*', cases=()): run the test for each bundled case"
    " that the patterns select, as in `numaproof check`, on the first matching machine; `cases`"
    " names your own case files"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `OPTIONS` to the command line and the configuration file."""
    group = parser.getgroup("numaproof", "conformance of Kubernetes node resource managers")
    for name, what in OPTIONS.items():
        group.addoption(f"--numaproof-{name}", metavar=name.upper(), help=what)
        parser.addini(_key(name), what)
    group.addoption("--numaproof-as", dest="numaproof_as", help=argparse.SUPPRESS)
    parser.addini("numaproof_as", "Former name of numaproof_baseline; removed in 0.3.")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker."""
    config.addinivalue_line("markers", MARKER)


def option(config: pytest.Config, name: str) -> str | None:
    """Returns an option from the command line or, failing that, the configuration file."""
    names = (name, "as") if name == "baseline" else (name,)
    values = (config.getoption(_key(one)) or config.getini(_key(one)) for one in names)
    return next(filter(None, values), None)


def _key(name: str) -> str:
    return f"numaproof_{name.replace('-', '_')}"


@pytest.fixture(scope="session")
def numaproof_implementation(pytestconfig: pytest.Config) -> str:
    """The command of the program to test; projects can override this fixture."""
    command = option(pytestconfig, "implementation")
    if command is None:
        pytest.fail(
            "no program to test: set numaproof_implementation in pytest's configuration file,"
            " pass --numaproof-implementation, or define a fixture numaproof_implementation",
            pytrace=False,
        )
    return command.replace("{rootdir}", str(pytestconfig.rootpath))


@pytest.fixture(scope="session")
def numaproof_target(
    pytestconfig: pytest.Config, numaproof_implementation: str
) -> Iterator[Target]:
    """The running program, after its handshake; it is stopped at the end of the session."""
    from numaproof.plugin.opening import start_target  # noqa: PLC0415 - imported on first use

    given = {name: option(pytestconfig, name) for name in OPTIONS}
    with start_target(numaproof_implementation, given) as target:
        yield target


@pytest.fixture(scope="session")
def numaproof(pytestconfig: pytest.Config, numaproof_target: Target) -> Checker:
    """Runs scenarios and cases against the program, and fails the test if anything is wrong."""
    from numaproof.plugin.checking import Checker  # noqa: PLC0415 - see above
    from numaproof.plugin.opening import read_known_failures  # noqa: PLC0415 - see above

    return Checker(
        numaproof_target, read_known_failures(option(pytestconfig, "known-failures"), pytestconfig)
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Generates a test for each case that the marker selects."""
    if "numaproof_case" not in metafunc.fixturenames:
        return
    from numaproof.plugin.choosing import select, test_id  # noqa: PLC0415 - see above

    marker = metafunc.definition.get_closest_marker("numaproof")
    arguments = dict(marker.kwargs) if marker else {}
    chosen = select(arguments, metafunc.definition.path.parent, metafunc.config)
    metafunc.parametrize("numaproof_case", chosen, ids=[test_id(one) for one in chosen])
