"""`numaproof config check`: checks a kubelet configuration file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from numaproof.cli.captured_nodes import captured_node_option
from numaproof.cli.commands import SentenceGroup
from numaproof.cli.fleet import is_given
from numaproof.cli.machine_names import node_machine_option, read_machine
from numaproof.cli.targets import release_option
from numaproof.cli.user_files import (
    CONFIGURATION,
    UserFile,
    check_read_once,
    find_configuration,
    lenient_option,
    machine_for,
)
from numaproof.protocol import codec
from numaproof.reports.json_output import ConfigurationProblem

if TYPE_CHECKING:
    from typing import Literal

    from numaproof.inputs.documents import Document
    from numaproof.inputs.errors import DocumentError
    from numaproof.simulation import configuration_check
    from numaproof.simulation.defects import DefectNote

ERRORS = 1
_IGNORED = ", which the kubelet ignores"


@click.group(cls=SentenceGroup)
def config() -> None:
    """Check a kubelet configuration before you use it.

    \b
    Example:
      numaproof config check kubelet.yaml --machine laptop-4c8t
    """


@config.command()
@click.argument("files", metavar="FILE...", type=CONFIGURATION, nargs=-1)
@captured_node_option(
    necessary=("files", "machine"), machine="machine", config="files", release="kubernetes"
)
@node_machine_option
@release_option
@lenient_option
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def check(
    files: tuple[UserFile, ...],
    machine: str,
    assume: tuple[tuple[str, int], ...],
    kubernetes: str,
    *,
    lenient: bool,
    as_json: bool,
) -> int:
    """Report why the kubelet would not start with FILE, and which settings to reconsider.

    FILE is a KubeletConfiguration, a file of another product that contains one, or the kubelet's
    flags. Further files, or those of a directory, override it. Warnings point out settings that
    have no effect or are harmful on the machine. Exit codes: 0 the kubelet starts, 1 it does not
    start or a field is unknown, 2 invalid input.

    \b
    Examples:
      numaproof config check kubelet.yaml --machine laptop-4c8t
      numaproof config check cluster.yaml#workers --machine laptop-4c8t
    """
    from numaproof.reference.config.fields import DECODED
    from numaproof.reports.console import encodable
    from numaproof.simulation import configuration_check
    from numaproof.simulation.admission import CannotAnswerError, Question

    check_read_once(files)
    found = find_configuration(files, (kubernetes,))
    document = found.document
    described = machine_for(
        found.settings,
        read_machine(machine, kubernetes, assume),
        release="" if is_given("kubernetes") else kubernetes,
    )
    try:
        question = Question(described.machine, found.settings, kubernetes, flags=found.flags)
        verdict = configuration_check.judge(question, found.adds_defaults)
        shaped = configuration_check.shaped_findings(question, verdict, found.adds_defaults)
    except CannotAnswerError as error:
        raise document.error(error.path, str(error)) from None
    unread: Literal["warning", "error"] = "warning" if lenient else "error"
    problems = [
        *(_of_field(unread, one, _IGNORED) for one in found.unknown),
        *(_of_field("error", one) for one in found.type_errors),
        *(_plain(document, one) for one in verdict.findings),
        *(_defect_warning(document, one) for one in shaped),
    ]
    if as_json:
        notes = (*map(_note, found.notes), *map(_note, described.lines))
        click.echo(codec.encode([*notes, *problems]))
    else:
        for note in found.notes:
            click.echo(note, err=True)
        for one in problems:
            click.echo(encodable(_line(one), sys.stdout))
        if not problems:
            click.echo(
                f"no problems: the kubelet of Kubernetes {kubernetes} starts"
                if found.settings.keys() & DECODED.keys()
                else "nothing to check: no setting of the resource managers was read"
            )
    return 0 if all(one["severity"] == "warning" for one in problems) else ERRORS


def _of_field(
    severity: Literal["warning", "error"], error: DocumentError, consequence: str = ""
) -> ConfigurationProblem:
    return ConfigurationProblem(
        severity=severity,
        file=error.file,
        field=error.field,
        line=error.line,
        message=error.message + consequence,
        fix=error.fix,
        section="",
    )


def _defect_warning(document: Document, note: DefectNote) -> ConfigurationProblem:
    finding = note.kubelet or note.documented_answer
    names = " and ".join(defect.name for defect in note.defects)
    whose = "documented, but not with" if note.kubelet is None else "only because of"
    where = ", ".join(defect.issue or defect.page for defect in note.defects)
    message = f"{whose} {names}: {finding.message}"
    file, line = document.locate(finding.path)
    return ConfigurationProblem(
        severity="warning",
        file=file,
        field=note.part,
        line=line,
        message=message,
        fix=f"see {where}",
        section="",
    )


def _plain(
    document: Document, finding: configuration_check.ConfigurationFinding
) -> ConfigurationProblem:
    from numaproof.inputs.documents import dotted_path

    file, line = document.locate(finding.path)
    return ConfigurationProblem(
        severity=finding.severity,
        file=file,
        field=dotted_path(finding.path),
        line=line,
        message=finding.message,
        fix=finding.fix,
        section=finding.section,
    )


def _note(text: str) -> ConfigurationProblem:
    return ConfigurationProblem(
        severity="note", file="", field="", line=0, message=text, fix="", section=""
    )


def _line(problem: ConfigurationProblem) -> str:
    field = f"{problem['field']}: " if problem["field"] else ""
    source = f" [{problem['section']}]" if problem["section"] else ""
    where = f"{problem['file']}:{problem['line']}"
    return f"{where}: {problem['severity']}: {field}{problem['message']} ({problem['fix']}){source}"
