"""One of several configurations in a file is chosen by its name."""

from __future__ import annotations

import pytest

from numaproof.formats import configurations
from numaproof.inputs.documents import DocumentError

GROUPS = """\
apiVersion: eksctl.io/v1alpha5
kind: ClusterConfig
nodeGroups:
- {name: a, kubeletExtraConfig: {cpuManagerPolicy: static}}
managedNodeGroups:
- {name: NAME, kubeletExtraConfig: {cpuManagerPolicy: none}}
"""


def test_a_name_chooses_a_configuration() -> None:
    several = configurations.read(GROUPS.replace("NAME", "b"), "groups.yaml")
    found = configurations.choose(several, "groups.yaml", "b")
    assert found.document.data == {"cpuManagerPolicy": "none"}


@pytest.mark.parametrize("name", ["", "a"])
def test_two_configurations_of_one_name_are_an_error(name: str) -> None:
    several = configurations.read(GROUPS.replace("NAME", "a"), "groups.yaml")
    with pytest.raises(DocumentError, match=r"groups\.yaml:6: another configuration 'a'"):
        configurations.choose(several, "groups.yaml", name)


UNIT = """\
[Service]
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=/usr/bin/kubelet $KUBELET_KUBEADM_ARGS
"""


def test_only_environment_files_that_are_not_named_are_missing() -> None:
    files = {
        "10-kubeadm.conf": UNIT,
        "node/kubeadm-flags.env": "KUBELET_KUBEADM_ARGS=--reserved-cpus=0\n",
    }
    layers = [one for name, text in files.items() for one in configurations.read(text, name)]
    missing = [note for note in configurations.combine(layers).notes if "also reads" in note]
    assert missing == [
        "10-kubeadm.conf:3: the unit also reads /etc/default/kubelet: name that file also"
    ]
