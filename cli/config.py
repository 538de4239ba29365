"""`numaproof config check`: check a kubelet's configuration file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from numaproof.cli.commands import SentenceGroup
from numaproof.cli.machine_names import discover_machine, profile_option
from numaproof.cli.targets import release_option
from numaproof.cli.user_files import USER_FILE, UserFile, lenient_option
from numaproof.protocol import codec

if TYPE_CHECKING:
    from numaproof.inputs.documents import Document
    from numaproof.simulation import configuration_check
    from numaproof.simulation.defects import DefectNote

ERRORS = 1
_IGNORED = "which the kubelet ignores"


@click.group(cls=SentenceGroup)
def config() -> None:
    """Check a kubelet configuration before the kubelet does.

    \b
    Example:
      numaproof config check kubelet.yaml --machine laptop-4c8t
    """


@config.command()
@click.argument("file", type=USER_FILE)
@profile_option
@release_option
@lenient_option
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def check(file: UserFile, machine: str, kubernetes: str, *, lenient: bool, as_json: bool) -> int:
    """Report what would keep the kubelet from starting with FILE, and settings to reconsider.

    Warnings are about settings that have no effect or do harm on the machine. Exit codes: 0 the
    kubelet starts, 1 it does not or there is an unknown field, 2 wrong input.

    \b
    Example:
      numaproof config check kubelet.yaml --machine laptop-4c8t
    """
    from numaproof.reports.console import encodable
    from numaproof.simulation import configuration_check, documents
    from numaproof.simulation.admission import CannotAnswerError, Question

    found = documents.configuration(file.text(), file.name, (kubernetes,))
    document = found.document
    for note in found.notes:
        click.echo(note, err=True)
    info = discover_machine(machine, kubernetes)
    try:
        question = Question(info, found.settings, kubernetes)
        verdict = configuration_check.judge(question)
        shaped = configuration_check.shaped_findings(question, verdict)
    except CannotAnswerError as error:
        raise document.error(error.path, str(error)) from None
    unread = "warning" if lenient else "error"
    told = [
        *(
            _finding(unread, one.field, one.line, f"{one.message}, {_IGNORED}", one.fix)
            for one in found.unknown
        ),
        *(
            _finding("error", one.field, one.line, one.message, one.fix)
            for one in found.type_errors
        ),
        *(_plain(document, one) for one in verdict.findings),
        *(_defect_warning(document, one) for one in shaped),
    ]
    if as_json:
        click.echo(codec.encode(told))
    else:
        for one in told:
            click.echo(encodable(_line(document.file, one), sys.stdout))
    return 0 if all(one["severity"] == "warning" for one in told) else ERRORS


_FIELDS = ("severity", "field", "line", "message", "fix", "section")


def _finding(*values: str | int) -> dict[str, Any]:
    """A finding of these fields, in their order; the section may be left out."""
    return dict.fromkeys(_FIELDS, "") | dict(zip(_FIELDS, values, strict=False))


def _defect_warning(document: Document, note: DefectNote) -> dict[str, Any]:
    """A warning that defects of the kubelet cause a finding, or hide one."""
    finding = note.kubelet or note.documented_answer
    names = " and ".join(defect.name for defect in note.defects)
    whose = "by the documents, but not with" if note.kubelet is None else "only because of"
    where = ", ".join(defect.issue or defect.page for defect in note.defects)
    message = f"{whose} {names}: {finding.message}"
    return _finding("warning", note.part, document.line(finding.path), message, f"see {where}")


def _plain(document: Document, finding: configuration_check.ConfigurationFinding) -> dict[str, Any]:
    from numaproof.inputs.documents import dotted_path

    line = document.line(finding.path)
    return _finding(
        finding.severity,
        dotted_path(finding.path),
        line,
        finding.message,
        finding.fix,
        finding.section,
    )


def _line(file: str, finding: dict[str, Any]) -> str:
    field = f"{finding['field']}: " if finding["field"] else ""
    source = f" [{finding['section']}]" if finding["section"] else ""
    where = f"{file}:{finding['line']}"
    return f"{where}: {finding['severity']}: {field}{finding['message']} ({finding['fix']}){source}"
