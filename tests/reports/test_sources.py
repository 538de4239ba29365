"""The sources of requirements, as links."""

from __future__ import annotations

import re

import pytest

from numaproof.conformance.requirements import load_registry
from numaproof.protocol.events import ReportedRequirement
from numaproof.reports.sources import Place, Source, citation, sources

DOCUMENTS = load_registry().reported_documents()
KUBERNETES = "https://github.com/kubernetes/kubernetes"


def places(document: str, section: str) -> dict[str, str]:
    """Returns the places of a citation that have links."""
    cited = ReportedRequirement("R-1", "area", "It must.", document, section)
    (source,) = sources(cited, DOCUMENTS)
    assert "".join(place.text for place in source.places) == section
    return {place.text: place.address for place in source.places if place.address}


@pytest.mark.parametrize(
    ("document", "section", "links"),
    [
        (
            "kubelet",
            "pkg/kubelet/kubelet.go, Kubelet.rejectPod, v1.36.3; #83697, PR #108052",
            {
                "pkg/kubelet/kubelet.go, Kubelet.rejectPod, v1.36.3": (
                    f"{KUBERNETES}/blob/v1.36.3/pkg/kubelet/kubelet.go"
                ),
                "#83697": f"{KUBERNETES}/issues/83697",
                "PR #108052": f"{KUBERNETES}/pull/108052",
            },
        ),
        (
            "cadvisor-issues",
            "#2566, PR #2579; kubernetes #89859",
            {
                "#2566": "https://github.com/google/cadvisor/issues/2566",
                "PR #2579": "https://github.com/google/cadvisor/pull/2579",
                "kubernetes #89859": f"{KUBERNETES}/issues/89859",
            },
        ),
        (
            "kubernetes-issues",
            "bottlerocket-os/bottlerocket#4754",
            {
                "bottlerocket-os/bottlerocket#4754": (
                    "https://github.com/bottlerocket-os/bottlerocket/issues/4754"
                )
            },
        ),
        (
            "kubernetes-keps",
            "KEP-1769",
            {"KEP-1769": "https://github.com/kubernetes/enhancements/issues/1769"},
        ),
        (
            "managers-uk",
            "full-pcpus-only; #140495",
            {
                "full-pcpus-only": (
                    "https://kubernetes.io/uk/docs/concepts/policy/node-resource-managers/"
                    "#full-pcpus-only"
                ),
                "#140495": f"{KUBERNETES}/issues/140495",
            },
        ),
        ("protocol", "What a restart does", {}),
    ],
)
def test_places_link_to_what_they_cite(document: str, section: str, links: dict[str, str]) -> None:
    assert places(document, section) == links


def test_documents_have_their_real_titles_and_languages() -> None:
    row = load_registry().by_id()["CPU-NONE-002"].event()
    first, second, third = sources(row, DOCUMENTS)
    assert (first.title, first.lang) == ("Менеджери ресурсів вузлів", "uk")
    assert first.about == "Node Resource Managers, Ukrainian, Kubernetes 1.35"
    assert first.english_name == "Node Resource Managers (Ukrainian)"
    assert citation(row, DOCUMENTS).startswith("Node Resource Managers (Ukrainian), ")
    assert second.title == "節點資源管理器"
    assert third.places == ()


def test_unknown_documents_are_named_by_their_keys() -> None:
    row = ReportedRequirement("R-1", "area", "It must.", "their-handbook", "Page 3; #5")
    assert sources(row, DOCUMENTS) == (Source("their-handbook", places=(Place("Page 3; #5"),)),)
    assert sources(ReportedRequirement("R-1", "area", "It must.", "", ""), DOCUMENTS) == ()


def test_every_citation_of_code_and_every_number_is_a_link() -> None:
    looks_cited = re.compile(r"\.go\b|#\d|KEP-")
    for row in load_registry().requirements:
        for source in sources(row.event(), DOCUMENTS):
            plain = [place.text for place in source.places if not place.address]
            assert not [text for text in plain if looks_cited.search(text)], row.id
            assert source.address or row.document == "protocol", row.id


def test_every_anchor_belongs_to_a_cited_section() -> None:
    cited = {
        (row.document, part)
        for row in load_registry().requirements
        for part in row.section.split("; ")
    }
    for key, document in DOCUMENTS.items():
        assert {(key, section) for section in document.anchors} <= cited
