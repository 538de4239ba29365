"""Failures that are known and being worked on: the cause begins like this, and who sees to it."""

KNOWN: dict[str, str] = {
    "traceback": "errors of users and programs that have no message yet",
    "raw text": "text from outside that reaches a terminal as it is",
    "no file name": "errors that do not say where",
    "no line": "errors that do not say on which line",
    "memory": "files that are read without a limit",
    "death": "nesting that no limit catches",
    "hang": "work without a limit",
}


def known(cause: str) -> str:
    """Why a failure is no news; empty if it is."""
    return next((why for start, why in KNOWN.items() if cause.startswith(start)), "")
