"""No field of a configuration or a pod, and no value in it, is passed over in silence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from numaproof.inputs.documents import DocumentError
from numaproof.inputs.errors import DocumentErrors
from numaproof.simulation import documents, fields, pods

if TYPE_CHECKING:
    from collections.abc import Iterator

RELEASE = ("1.37",)

CONFIGURATION = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 2m0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
cgroupDriver: systemd
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true"}
cpuManagerReconcilePeriod: 5s
evictionHard: {memory.available: 100Mi}
evictionSoft: {memory.available: 200Mi}
evictionSoftGracePeriod: {memory.available: 1m30s}
featureGates: {MemoryQoS: true}
healthzBindAddress: 127.0.0.1
healthzPort: 10248
imageGCHighThresholdPercent: 85
kubeReserved: {cpu: 500m, memory: 1Gi}
logging:
  flushFrequency: 0
  options:
    json:
      infoBufferSize: "0"
  verbosity: 2
maxPods: 110
memoryManagerPolicy: Static
nodeStatusUpdateFrequency: 10s
registerWithTaints:
- effect: NoSchedule
  key: dedicated
reservedMemory:
- limits: {memory: 1124Mi}
  numaNode: 0
reservedSystemCPUs: 0-1
rotateCertificates: true
shutdownGracePeriod: 30s
staticPodPath: /etc/kubernetes/manifests
systemReserved: {memory: 1Gi}
topologyManagerPolicy: single-numa-node
topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true"}
topologyManagerScope: pod
"""

POD = """\
apiVersion: v1
kind: Pod
metadata:
  annotations: {team: data}
  labels: {app: db}
  name: db
  namespace: data
spec:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - key: disk
            operator: In
            values: [ssd]
  containers:
  - args: [serve]
    command: [db]
    env:
    - name: NODE
      valueFrom:
        fieldRef:
          fieldPath: spec.nodeName
    image: db
    livenessProbe:
      httpGet:
        path: /healthz
        port: 8080
      periodSeconds: 10
    name: db
    ports:
    - containerPort: 5432
      protocol: TCP
    resources:
      limits: {cpu: 2, memory: 1Gi}
      requests: {cpu: 2, memory: 1Gi}
    securityContext:
      privileged: false
    volumeMounts:
    - mountPath: /data
      name: data
  initContainers:
  - image: setup
    name: setup
    resources:
      limits: {cpu: 1, memory: 1Gi}
    restartPolicy: Always
  nodeSelector: {disk: ssd}
  priorityClassName: high
  restartPolicy: Always
  schedulerName: default-scheduler
  serviceAccountName: db
  terminationGracePeriodSeconds: 30
  tolerations:
  - effect: NoSchedule
    key: dedicated
    operator: Exists
  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: zone
    whenUnsatisfiable: DoNotSchedule
  volumes:
  - emptyDir:
      medium: Memory
    name: data
"""

CRON_JOB = """\
apiVersion: batch/v1
kind: CronJob
metadata:
  name: nightly
spec:
  concurrencyPolicy: Forbid
  jobTemplate:
    spec:
      backoffLimit: 2
      completions: 3
      parallelism: 2
      template:
        metadata:
          labels: {app: nightly}
        spec:
          containers:
          - name: app
            resources:
              limits: {cpu: 1}
          restartPolicy: Never
  schedule: 0 1 * * *
"""

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  strategy:
    rollingUpdate:
      maxSurge: 1
    type: RollingUpdate
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: app
        resources:
          requests: {cpu: 500m}
"""

DOCUMENTS = {
    "configuration": CONFIGURATION,
    "pod": POD,
    "cron job": CRON_JOB,
    "deployment": DEPLOYMENT,
}

FIELD = re.compile(r"[ -]*(\w+):")


def doubled(name: str) -> str:
    return name[:1] * 2 + name[1:]


def dropped(name: str) -> str:
    return name[:-2] + name[-1:]


def swapped(name: str) -> str:
    """The name with its first two different neighbours swapped."""
    place = next(n for n in range(len(name) - 1) if name[n] != name[n + 1])
    return name[:place] + name[place + 1] + name[place] + name[place + 2 :]


def cased(name: str) -> str:
    return name[:1].upper() + name[1:]


SLIPS = (doubled, dropped, swapped, cased)


def slips() -> Iterator[Any]:
    """Every field of the documents with each slip: document, line, name and what is written."""
    for title, text in DOCUMENTS.items():
        for number, line in enumerate(text.splitlines(), 1):
            found = FIELD.match(line)
            assert found
            for slip in SLIPS:
                written = slip(found[1])
                name = f"{title}-{number}-{written}"
                yield pytest.param(title, number, found[1], written, id=name)


def read(title: str, text: str) -> None:
    if title == "configuration":
        found = documents.configuration(text, "file", RELEASE)
        documents.refuse((*found.unknown, *found.mistyped))
    else:
        pods.read([("file", text)], releases=RELEASE)


@pytest.mark.parametrize("title", DOCUMENTS)
def test_a_document_without_slips_is_read(title: str) -> None:
    read(title, DOCUMENTS[title])


@pytest.mark.parametrize(("title", "number", "name", "written"), [*slips()])
def test_a_slip_in_a_field_is_named(title: str, number: int, name: str, written: str) -> None:
    lines = DOCUMENTS[title].splitlines()
    lines[number - 1] = lines[number - 1].replace(f"{name}:", f"{written}:", 1)
    with pytest.raises(DocumentError) as raised:
        read(title, "\n".join(lines))
    error = raised.value
    assert (error.line, error.field.rpartition(".")[2]) == (number, written)
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


def errors(value: Any, type_: str, *releases: str) -> list[tuple[str, str]]:
    found = fields.problems(value, type_, releases)
    return [(documents.documents.dotted(one.path), one.message) for one in found]


def test_a_field_of_other_releases_only_is_said_to_be_theirs() -> None:
    pod = {"spec": {"resources": {"limits": {"cpu": 1}}}}
    assert errors(pod, "Pod", "1.37") == []
    assert errors(pod, "Pod", "1.30", "1.32") == []
    assert errors(pod, "Pod", "1.31") == [
        ("spec.resources", "not a field of Kubernetes 1.31, only of 1.32 to 1.37")
    ]


def test_the_status_of_a_pod_may_be_of_any_release() -> None:
    assert errors({"status": {"observedGeneration": 1}}, "Pod", "1.30") == []
    assert errors({"status": {"phsae": "Running"}}, "Pod", "1.30") == [
        ("status.phsae", "unknown field")
    ]


def test_keys_of_mappings_are_free() -> None:
    assert errors({"metadata": {"labels": {"anything": "x"}}}, "Pod", "1.37") == []


def test_several_unknown_fields_are_all_named() -> None:
    with pytest.raises(DocumentErrors) as raised:
        read("pod", POD.replace("image:", "imag:"))
    assert [one.line for one in raised.value.errors] == [25, 44]


def test_every_document_with_an_error_is_named_in_every_file() -> None:
    slip = "kind: Pod\nmetadata: {name: a}\nspce: {}\n"
    listed = "kind: List\nitems:\n- kind: Podd\n- 5\n"
    texts = [("one", f"{slip}---\na: [\n---\n{slip}"), ("two", f"{POD}---\n{listed}---\n{POD}")]
    with pytest.raises(DocumentErrors) as raised:
        pods.read(texts, releases=RELEASE)
    told = [(one.file, one.line, one.message.split()[0]) for one in raised.value.errors]
    assert told[:3] == [("one", 3, "unknown"), ("one", 6, "not"), ("one", 9, "unknown")]
    assert [file for file, *_ in told[3:]] == ["two"] * 3
    assert raised.value.errors[-1].message.startswith("duplicate ")


def test_errors_beyond_a_limit_are_not_looked_for_in_further_documents() -> None:
    for text in ("kind: Podd\n---\n", "a: [\n---\n"):
        with pytest.raises(DocumentErrors) as raised:
            pods.read([("one", text * 90), ("two", text * 90), ("three", "")], releases=RELEASE)
        assert len(raised.value.errors) == documents.MOST_PROBLEMS
        assert str(raised.value).count("\n") == documents.MOST_PROBLEMS - 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Podd\n", "unknown kind 'Podd' (did you mean Pod?)"),
        ("kind: Deploymnet\n", "did you mean Deployment?"),
        ("kidn: Pod\n", "kidn: unknown field (did you mean kind?)"),
        ("metadata: {}\n", "an object without a kind"),
        ("kind: List\nitem: []\n", "item: unknown field (did you mean items?)"),
        ("kind: List\nmetadata: {resourceVersoin: ''}\n", "(did you mean resourceVersion?)"),
    ],
)
def test_a_slip_in_a_kind_or_a_list_is_named(text: str, message: str) -> None:
    with pytest.raises(DocumentError) as raised:
        read("pod", text)
    assert message in str(raised.value)


@pytest.mark.parametrize("amount", ["cpus: 1", "memroy: 1Gi", "Cpu: 1"])
def test_a_slip_in_a_resource_is_named(amount: str) -> None:
    with pytest.raises(DocumentError, match="not a resource of containers"):
        read("pod", POD.replace("{cpu: 1, memory: 1Gi}", f"{{{amount}}}"))


def test_lenient_reading_notes_what_it_ignores() -> None:
    text = POD.replace("schedulerName:", "schedulrName:")
    (note,) = pods.read([("file", text)], releases=RELEASE, lenient=True).notes
    assert note == (
        "warning: ignored: file:52: spec.schedulrName: unknown field (did you mean schedulerName?)"
    )


def test_a_configuration_of_unknown_fields_alone_is_refused() -> None:
    head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    with pytest.raises(DocumentError, match="did you mean maxPods"):
        documents.configuration(f"{head}maxPod: 5\n", "file", RELEASE)


def test_unknown_fields_beyond_a_limit_are_not_looked_for() -> None:
    text = "".join(f"maxPod{n}: 1\n" for n in range(30_000))
    head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    with pytest.raises(DocumentErrors) as raised:
        documents.configuration(head + text, "file", RELEASE)
    assert len(raised.value.errors) == documents.MOST_PROBLEMS


def test_a_slip_is_looked_for_in_names_of_the_same_length_only() -> None:
    assert fields.is_slip("kid", "kind")
    assert not fields.is_slip("k" * 1_000_000, "kind")


HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 110\n"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("podsPerCore: '4'", "podsPerCore: must be a whole number"),
        ("podsPerCore: 4.5", "podsPerCore: must be a whole number"),
        ("logging: [{foo: 1}]", "logging: must be a mapping"),
        ("failSwapOn: 'yes'", "failSwapOn: must be true or false"),
        ("nodeStatusUpdateFrequency: 10", "nodeStatusUpdateFrequency: must be a duration"),
        ("clusterDNS: 10.96.0.10", "clusterDNS: must be a list"),
        ("clusterDNS: [10]", "clusterDNS[0]: must be text"),
        ("authentication: {x509: true}", "authentication.x509: must be a mapping"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_all_that_is_in_it(
    setting: str, message: str
) -> None:
    found = documents.configuration(f"{HEAD}{setting}\n", "file", RELEASE)
    assert found.unknown == ()
    (error,) = found.mistyped
    assert str(error).startswith(f"file:4: {message}")


def test_the_kubelet_words_what_is_wrong_with_the_fields_that_it_decodes_here() -> None:
    found = documents.configuration(f"{HEAD}cpuManagerPolicyOptions: 5\n", "file", RELEASE)
    assert found.mistyped == ()


@pytest.mark.parametrize("setting", ["logging: null", "tolerations:", "clusterDNS: [null]"])
def test_null_is_a_value_of_every_type(setting: str) -> None:
    found = documents.configuration(f"{HEAD}{setting}\n", "file", RELEASE)
    assert found.mistyped == ()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[serve]", "{serve: {}}", "args: must be a list"),
        ("[ssd]", "ssd", "values: must be a list"),
        ("privileged: false", "privileged: 'no'", "privileged: must be true or false"),
        ("name: NODE", "name: 5", "env[0].name: must be text"),
        ("{team: data}", "[team]", "annotations: must be a mapping"),
    ],
)
@pytest.mark.parametrize("lenient", [False, True])
def test_a_pod_with_a_value_of_the_wrong_type_is_refused(
    *, old: str, new: str, message: str, lenient: bool
) -> None:
    text = POD.replace(old, new)
    with pytest.raises(DocumentError, match=re.escape(message)):
        pods.read([("file", text)], releases=RELEASE, lenient=lenient)


@pytest.mark.parametrize(
    ("setting", "product"),
    [
        ("kubeletConfig: {cpuManagerPolicy: static}", "GKE"),
        ("linuxConfig: {sysctl: {}}", "GKE"),
        ("kubelet-arg+: [max-pods=5]", "k3s or RKE2"),
        ("kubelet-arg: [max-pods=5]", "k3s or RKE2"),
    ],
)
def test_another_products_file_is_called_by_its_name(setting: str, product: str) -> None:
    for head in ("", HEAD):
        with pytest.raises(DocumentError, match=product):
            documents.configuration(f"{head}{setting}\n", "file", RELEASE)


def test_no_field_is_suggested_that_could_not_take_the_value() -> None:
    found = documents.configuration(f"{HEAD}kubeletCgroup: {{}}\n", "file", RELEASE)
    assert [one.fix for one in found.unknown] == ["remove it"]


@pytest.mark.parametrize(
    ("text", "old", "new", "fix"),
    [
        (POD, "v1", "v2", "set apiVersion: v1"),
        (DEPLOYMENT, "apps/v1", "extensions/v1beta1", "set apiVersion: apps/v1"),
        (DEPLOYMENT, "apps/v1", "apps/v1beta2", "set apiVersion: apps/v1"),
        (CRON_JOB, "batch/v1", "batch/v1beta1", "set apiVersion: batch/v1"),
    ],
)
def test_a_version_that_no_cluster_serves_is_refused(
    text: str, old: str, new: str, fix: str
) -> None:
    with pytest.raises(DocumentError, match=f"serves no .*{re.escape(fix)}"):
        read("pod", text.replace(old, new, 1))


def test_a_kind_of_another_group_is_not_the_kind_of_that_name() -> None:
    text = CRON_JOB.replace("batch/v1", "batch.volcano.sh/v1alpha1", 1)
    (note,) = pods.read([("file", text)], releases=RELEASE).notes
    assert "skipped batch.volcano.sh/v1alpha1 CronJob" in note


def test_a_kind_is_text() -> None:
    with pytest.raises(DocumentError, match="kind: must be text"):
        read("pod", "kind: [Pod]\n")
