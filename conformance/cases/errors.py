"""The error about a case that reads well and still cannot be played, and where it is written."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from numaproof.inputs import documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


class CaseError(ValueError):
    """A case cannot be played as written; the message names the case and the step.

    Attributes:
        case: the id of the case.
        step: the number of the step, from 1; 0 for the case as a whole.
        message: what is wrong.
    """

    def __init__(self, case: str, step: int, message: str) -> None:
        self.case = case
        self.step = step
        self.message = message
        where = f"case {case}, step {step}" if step else f"case {case}"
        super().__init__(f"{where}: {message}")


@contextmanager
def located(paths: Iterable[Path]) -> Iterator[None]:
    """Adds file and line to a `CaseError` about a case of one of the files.

    Args:
        paths: case files, and folders of them.

    Raises:
        documents.DocumentError: the case is written in one of them.
        CaseError: it is in none.
    """
    try:
        yield
    except CaseError as error:
        for file in files_of(paths):
            document = documents.load(file)
            cases = document.data["cases"]
            for number, case in enumerate(cases):
                if case["id"] == error.case:
                    step = ("steps", error.step - 1) if error.step else ()
                    raise document.error(("cases", number, *step), str(error)) from None
        raise


def files_of(paths: Iterable[Path]) -> Iterator[Path]:
    """The case files among the paths and in those that are folders, in order.

    Raises:
        documents.DocumentError: there is none in a folder.
    """
    for path in paths:
        files = sorted(path.rglob("*.y*ml")) if path.is_dir() else [path]
        if not files:
            raise documents.DocumentError(str(path), 0, "", "there is no .yaml file in this folder")
        yield from files
