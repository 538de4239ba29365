"""Coroutines as tests, and what the tests of kubelet processes need of the host."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

# Without numaproof[kubelet] there is nothing to test.
collect_ignore_glob = [] if find_spec("grpc") and find_spec("aiohttp") else ["test_*.py"]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine, in an event loop of its own."""
    test: Callable[..., Any] = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}
    asyncio.run(asyncio.wait_for(test(**arguments), 120))
    return True


@pytest.fixture(scope="session")
def namespaces_permitted() -> None:
    """Skips the test where processes can't have namespaces of their own."""
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    options = ("--mount", "--pid", "--net", "--fork", "--mount-proc")
    try:
        tried = subprocess.run(
            ["unshare", *user, *options, "true"], capture_output=True, text=True, check=False
        )
    except OSError as error:
        pytest.skip(f"no namespaces: {error}")
    if tried.returncode:
        pytest.skip(f"no namespaces: {tried.stderr.strip()}")
