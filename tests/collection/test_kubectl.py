"""kubectl's messages become short errors with a fix."""

from __future__ import annotations

import sys

import pytest

from numaproof.collection.kubectl import Kubectl, KubectlError, interpret

FORBIDDEN = (
    'Error from server (Forbidden): nodes "n1" is forbidden: User "jane" cannot get resource'
    ' "nodes/proxy" in API group "" at the cluster scope'
)
IN_NAMESPACE = (
    'Error from server (Forbidden): error when creating "STDIN": pods is forbidden: User "jane"'
    ' cannot create resource "pods" in API group "" in the namespace "default"'
)


@pytest.mark.parametrize(
    ("stderr", "cause"),
    [
        (FORBIDDEN, "forbidden"),
        ('Error from server (NotFound): nodes "n1" not found', "absent"),
        (
            "Error from server (NotFound): the server could not find the requested resource",
            "unserved",
        ),
        ('error: the server doesn\'t have a resource type "noderesourcetopologies"', "unserved"),
        (
            (
                'E1126 22:29:21.839088   21335 memcache.go:381] "Couldn\'t get" err="refused"\n'
                "The connection to the server 127.0.0.1:1 was refused - did you specify the right"
                " host or port?"
            ),
            "unreachable",
        ),
        ("Error in configuration: context was not found for specified context: x", "unreachable"),
        ("error: stat /nope: no such file or directory", "unreachable"),
        ("error: You must be logged in to the server (Unauthorized)", "unreachable"),
        ("Error from server: error dialing backend: dial tcp: i/o timeout", "unreachable"),
        ("Error from server (BadRequest): container is waiting to start", "failed"),
        ("", "failed"),
    ],
)
def test_the_last_line_says_why_kubectl_failed(stderr: str, cause: str) -> None:
    assert interpret(stderr).cause == cause


def test_a_missing_permission_is_named_as_a_rule() -> None:
    assert str(interpret(FORBIDDEN)) == (
        "not allowed to get nodes/proxy (allow verb get on resource nodes/proxy in a ClusterRole)"
    )
    assert interpret(IN_NAMESPACE).fix == (
        'allow verb create on resource pods in a Role in the namespace "default"'
    )


def test_options_of_the_cluster_follow_the_command() -> None:
    kubectl = Kubectl("/bin/kubectl", "blue", "config.yaml")
    assert kubectl.command(("get", "pods")) == (
        "/bin/kubectl",
        "get",
        "pods",
        "--kubeconfig=config.yaml",
        "--context=blue",
    )


@pytest.mark.parametrize(
    ("kubectl", "message"),
    [
        (Kubectl("no-such-kubectl"), "no-such-kubectl: no such program"),
        (Kubectl("/"), "/: cannot be started"),
        (Kubectl(sys.executable, timeout=0.2), "no answer to"),
    ],
)
def test_a_kubectl_that_does_not_answer_is_an_error(kubectl: Kubectl, message: str) -> None:
    with pytest.raises(KubectlError, match=message) as raised:
        kubectl.run(("-c", "import time; time.sleep(60)"))
    assert raised.value.fix
