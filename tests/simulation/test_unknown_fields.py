"""Unknown fields and values in a configuration or a pod are always reported."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from numaproof.formats import configurations
from numaproof.inputs.documents import DocumentError
from numaproof.inputs.errors import DocumentErrors
from numaproof.inputs.names import is_slip
from numaproof.inputs.streams import MAX_PROBLEMS
from numaproof.protocol.machine import MachineInfo
from numaproof.reference.config import flags
from numaproof.simulation import configuration_check, documents, fields, pods
from numaproof.simulation.admission import Question

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol.messages import KubeletConfiguration

RELEASE = ("1.37",)

DOCUMENTS = {
    one.stem: one.read_text("utf-8") for one in (Path(__file__).parent / "documents").iterdir()
}

FIELD = re.compile(r"[ -]*(\w+):")


def double_letter(name: str) -> str:
    return name[:1] * 2 + name[1:]


def drop_letter(name: str) -> str:
    return name[:-2] + name[-1:]


def swap_letters(name: str) -> str:
    """Swaps the first two different adjacent characters of a name."""
    place = next(n for n in range(len(name) - 1) if name[n] != name[n + 1])
    return name[:place] + name[place + 1] + name[place] + name[place + 2 :]


def capitalize(name: str) -> str:
    return name[:1].upper() + name[1:]


SLIPS = (double_letter, drop_letter, swap_letters, capitalize)


def slips() -> Iterator[Any]:
    """Yields every field of the documents: document, line, name and a misspelt name."""
    for title, text in DOCUMENTS.items():
        for number, line in enumerate(text.splitlines(), 1):
            found = FIELD.match(line)
            assert found
            written = SLIPS[number % len(SLIPS)](found[1])
            yield pytest.param(title, number, found[1], written, id=f"{title}-{number}-{written}")


def configuration(text: str) -> documents.ConfigurationFile:
    (found,) = configurations.read(text, "file")
    return documents.configuration(found, RELEASE)


def read(title: str, text: str) -> None:
    if title == "configuration":
        found = configuration(text)
        documents.refuse((*found.unknown, *found.type_errors))
    else:
        pods.read([("file", text)], pods.PodOptions(RELEASE))


@pytest.mark.parametrize("title", DOCUMENTS)
def test_a_document_without_typos_is_accepted(title: str) -> None:
    read(title, DOCUMENTS[title])


@pytest.mark.parametrize(("title", "number", "name", "misspelling"), [*slips()])
def test_a_typo_in_a_field_is_reported(
    title: str, number: int, name: str, misspelling: str
) -> None:
    lines = DOCUMENTS[title].splitlines()
    lines[number - 1] = lines[number - 1].replace(f"{name}:", f"{misspelling}:", 1)
    with pytest.raises(DocumentError) as raised:
        read(title, "\n".join(lines))
    error = raised.value
    assert (error.line, error.field.rpartition(".")[2]) == (number, misspelling)
    assert error.fix == f"did you mean {name}?"


def test_every_field_of_every_type_is_known() -> None:
    known = fields.table()
    types = {one.type for fields_of in known.values() for one in fields_of.values()}
    names = {re.sub(r"^(\[\]|map\[\])+", "", one) for one in types}
    leaves = names - known.keys()
    assert leaves == {
        "Duration",
        "FieldsV1",
        "IntOrString",
        "Quantity",
        "QuantityValue",
        "Time",
        "TimeOrMetaDuration",
        "bool",
        "float64",
        "int32",
        "int64",
        "string",
        "uint32",
    }


def test_further_documents_are_not_checked_beyond_a_limit() -> None:
    for text in ("kind: Podd\n---\n", "a: [\n---\n"):
        files = [("one", text * 90), ("two", text * 90), ("three", "")]
        with pytest.raises(DocumentErrors) as raised:
            pods.read(files, pods.PodOptions(RELEASE))
        assert len(raised.value.errors) == MAX_PROBLEMS
        assert str(raised.value).count("\n") == MAX_PROBLEMS - 1


def test_unknown_fields_are_reported_up_to_a_limit() -> None:
    text = "".join(f"maxPod{n}: 1\n" for n in range(30_000))
    head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    with pytest.raises(DocumentErrors) as raised:
        configuration(head + text)
    assert len(raised.value.errors) == MAX_PROBLEMS


def test_only_names_of_similar_length_are_suggested() -> None:
    assert is_slip("kid", "kind")
    assert not is_slip("k" * 1_000_000, "kind")


HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 110\n"


def test_the_kubelet_reports_errors_in_fields_it_decodes() -> None:
    found = configuration(f"{HEAD}cpuManagerPolicyOptions: 5\n")
    assert found.type_errors == ()


VALUES = {
    "[]": [],
    "string": "a",
    "bool": True,
    "int32": 1,
    "int64": 1,
    "float64": 1,
    "Duration": "1s",
}
"""A value for each kind of field; mappings are the rest."""


@pytest.mark.parametrize("name", sorted(fields.of(fields.CONFIGURATION, RELEASE)))
def test_a_typo_in_any_field_of_the_kubelet_is_named(name: str) -> None:
    type_ = fields.table()[fields.CONFIGURATION][name].type
    value = VALUES.get("[]" if type_.startswith("[]") else type_, {})
    for slip in SLIPS:
        found = configuration(f"{HEAD}{json.dumps({slip(name): value})[1:-1]}\n")
        (error,) = found.unknown
        assert (error.line, error.field) == (4, slip(name))
        assert error.fix == f"did you mean {name}?"


@pytest.mark.parametrize("name", [one for one in sorted(flags.table()["1.37"]) if len(one) > 3])
def test_a_typo_in_any_flag_of_the_kubelet_is_named(name: str) -> None:
    config: KubeletConfiguration = {}
    for slip in SLIPS[:-1]:
        flag = f"--{slip(name)}=1"
        question = Question(MachineInfo(), config, "1.37", flags=(flag,))
        (finding,) = configuration_check.refused_flags(question)
        assert (finding.path, finding.fix) == ((f"--{slip(name)}",), f"did you mean --{name}?")


@pytest.mark.parametrize(
    ("type_", "value", "fix"),
    [
        ("Deployment", {"spec": {"containers": []}}, "move it into template.spec"),
        ("Deployment", {"replicas": 2}, "move it into spec"),
        ("CronJob", {"spec": {"completions": 2}}, "move it into jobTemplate.spec"),
        ("StatefulSet", {"spec": {"template": {"replicas": 2}}}, "move it out of template"),
        ("Pod", {"spec": {"containers": [{"limits": {}}]}}, "move it into resources"),
        ("Job", {"spec": {"tasks": []}}, "remove it"),
        ("DaemonSet", {"spec": {"replicas": 2}}, "remove it"),
    ],
)
def test_a_field_in_the_wrong_place_is_said_to_be_moved(
    type_: str, value: dict[str, Any], fix: str
) -> None:
    (problem,) = fields.problems(value, type_, RELEASE)
    assert (problem.message, problem.fix) == ("unknown field", fix)
