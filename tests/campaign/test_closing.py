"""Closing Dask's processes on a busy machine."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from numaproof.campaign.cluster import closed_at_last

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def slow_to_close() -> Iterator[str]:
    try:
        yield "process"
    finally:
        raise TimeoutError


def test_an_interrupt_is_not_hidden_by_processes_that_close_slowly() -> None:
    with pytest.raises(KeyboardInterrupt), closed_at_last(slow_to_close()):
        raise KeyboardInterrupt


def test_processes_that_close_slowly_are_no_error() -> None:
    with closed_at_last(slow_to_close()) as process:
        assert process == "process"
