"""What tests of all managers have in common: pods, and one statement after another."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from numaproof.conformance.cases import manifests
from numaproof.conformance.go_tests import literals
from numaproof.conformance.go_tests.checks import NotExpressibleError
from numaproof.conformance.go_tests.playing import affinities, config_of
from numaproof.conformance.go_tests.signatures import arguments, since
from numaproof.conformance.go_tests.syntax import block, camel, inline, quote, string_map
from numaproof.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numaproof.conformance.go_tests.playing import PlayedCall
    from numaproof.protocol.machine import MachineInfo
    from numaproof.protocol.messages import Pod


_ALL = ("AllAlpha", "AllBeta")
"""The feature gates that are not constants of the kubelet."""


class Form:
    """Writes the calls of a case as statements of a test in one of the kubelet's packages.

    Args:
        calls: the calls.
        release: the release for whose packages the test is written.

    Attributes:
        package: the folder of the package below ``pkg/kubelet``.
        config: the configuration.
        on_node: the variables of the pods on the node, by uid.
    """

    package: ClassVar[str]

    def __init__(self, calls: Sequence[PlayedCall], release: str) -> None:
        self.calls = calls
        self.release = release
        self.config = config_of(calls)
        self.on_node: dict[str, str] = {}
        self._variables: set[str] = set()
        self._pods: dict[str, Pod] = {}

    def body(self) -> str:
        """Returns the test's statements.

        Raises:
            NotExpressibleError: the package can't show one of the calls or expectations.
        """
        statements = [*self.gates()]
        for call in self.calls:
            try:
                statements += self._statements(call)
            except NotExpressibleError as error:
                raise NotExpressibleError(f"step {call.number}: {error}") from None
        return "\n".join(statements)

    def _statements(self, call: PlayedCall) -> Iterator[str]:
        args = call.args
        match args:
            case messages.StartArgs():
                self._check_start(call, args)
                yield from self.start(call, args)
            case messages.AdmitArgs():
                yield from self._admit(call, args.pod)
            case messages.RemoveArgs():
                yield from self.remove(call, args)
            case messages.HintsArgs():
                yield from self._pod(args.pod)
                yield from self.hints(call, args)
            case messages.NoArgs() if call.step and call.step.state:
                yield from self.state(call)
            case messages.DevicesArgs():
                yield from self.devices(args.devices)
            case _:
                yield from self.other(call)

    def _check_start(self, call: PlayedCall, args: messages.StartArgs) -> None:
        """Checks that a start has the first start's settings and machine.

        Raises:
            NotExpressibleError: it has others.
        """
        changed = call.step and call.step.start and (call.step.start.kubernetes or args.flags)
        first = next(one.args for one in self.calls if isinstance(one.args, messages.StartArgs))
        if changed or (args.config, args.machine) != (first.config, first.machine):
            raise NotExpressibleError("flags and changes at a restart are not supported")
        if args.running is not None and not self.package.endswith("devicemanager"):
            raise NotExpressibleError("a restart with running containers is not supported")
        if {one["metadata"]["uid"] for one in args.pods} != {*self.on_node}:
            raise NotExpressibleError("pods that leave or arrive at a restart are not supported")

    # What a form does for each call

    def start(self, call: PlayedCall, args: messages.StartArgs) -> Iterator[str]:
        """Yields statements that create and start the managers."""
        del args
        raise self.unsupported(call)

    def admit(self, call: PlayedCall, pod: str, manifest: Pod) -> Iterator[str]:
        """Yields statements that admit the pod in the variable `pod`, and check what it gets."""
        del pod, manifest
        raise self.unsupported(call)

    def remove(self, call: PlayedCall, args: messages.RemoveArgs) -> Iterator[str]:
        """Yields statements that remove a pod or one of its containers."""
        del args
        raise self.unsupported(call)

    def forget(self, uid: str) -> Iterator[str]:
        """Yields statements that release what a refused pod holds."""
        del uid
        yield from ()

    def hints(self, call: PlayedCall, args: messages.HintsArgs) -> Iterator[str]:
        """Yields statements that check a pod's hints."""
        del args
        raise self.unsupported(call)

    def state(self, call: PlayedCall) -> Iterator[str]:
        """Yields statements that check the state."""
        raise self.unsupported(call)

    def devices(self, devices: Sequence[messages.DeviceResource]) -> Iterator[str]:
        """Yields statements that report devices."""
        del devices
        yield from ()

    def other(self, call: PlayedCall) -> Iterator[str]:
        """Yields statements for the calls that only one package can show."""
        raise self.unsupported(call)

    # What forms share

    def mask(self, hint: messages.Hint) -> Iterator[str]:
        """Yields the creation of a bit mask of a hint's NUMA nodes in the variable ``mask``."""
        nodes = ", ".join(map(str, sorted(hint.numa or ())))
        yield from self.attempt("mask, err", f"bitmask.NewBitMask({nodes})", "NewBitMask")

    def arguments(self, function: str, *common: str) -> str:
        """Returns the arguments of a call, as in `numaproof.conformance.go_tests.signatures`."""
        return arguments(function, self.release, *common)

    def since(self, first: str) -> bool:
        """Whether the release is `first` or later."""
        return since(self.release, first)

    def assign(self, names: str, value: str) -> str:
        """Returns an assignment, which declares the variables that are new."""
        new = {*names.split(", ")} - {"_"} - self._variables
        self._variables |= new
        return f"{names} {':=' if new else '='} {value}"

    def has(self, variable: str) -> bool:
        """Whether the test has declared a variable."""
        return variable in self._variables

    def attempt(self, names: str, call: str, function: str) -> Iterator[str]:
        """Yields a call whose last result is an error that ends the test."""
        yield self.assign(names, call)
        yield block("if err != nil", f't.Fatalf("{function}() failed: %v", err)')

    def gates(self, *more: str) -> Iterator[str]:
        """Yields statements that set the configured feature gates."""
        gates = {**dict.fromkeys(more, True), **(self.config.get("featureGates") or {})}
        for name, on in gates.items():
            if name in _ALL:
                raise NotExpressibleError(f"the feature gate {name} is not supported")
            yield (
                "featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate,"
                f" features.{name}, {str(on).lower()})"
            )

    def _admit(self, call: PlayedCall, manifest: Pod) -> Iterator[str]:
        yield from self._pod(manifest)
        uid = manifest["metadata"]["uid"]
        self.on_node[uid] = self.variable(uid)
        yield from self.admit(call, self.variable(uid), manifest)
        if call.expected.refused:
            del self.on_node[uid]
            if call is not self.calls[-1]:
                yield from self.forget(uid)

    def _pod(self, manifest: Pod) -> Iterator[str]:
        uid = manifest["metadata"]["uid"]
        if self._pods.get(uid) == manifest:
            return
        variable, spec = self.variable(uid), manifest["spec"]
        equal = [other for other, one in self._pods.items() if one["spec"] == spec and other != uid]
        self._pods[uid] = manifest
        if not equal:
            yield self.assign(variable, literals.pod(manifest))
            return
        yield self.assign(variable, f"{self.variable(equal[0])}.DeepCopy()")
        names = ", ".join(quote(manifest["metadata"][key]) for key in ("name", "uid"))
        yield f"{variable}.Name, {variable}.UID = {names}"

    def variable(self, uid: str) -> str:
        """Returns the variable with a pod."""
        return f"pod{camel(manifests.pod_name(uid))}"

    def containers(self, uid: str) -> Sequence[str]:
        """Returns the names of a pod's containers, init containers first."""
        return manifests.containers(self._pods[uid])

    def machine(self, args: messages.StartArgs) -> MachineInfo:
        """Returns the machine of a start.

        Raises:
            NotExpressibleError: the kubelet discovers it.
        """
        if args.machine is None:
            raise NotExpressibleError("a start that discovers the machine is not supported")
        return args.machine

    def hint_provider(self, args: messages.HintsArgs) -> tuple[str, ...]:
        """Returns the function that gives a pod's or a container's hints, and its arguments."""
        pod = self.variable(args.pod["metadata"]["uid"])
        if args.container is None:
            return "GetPodTopologyHints", pod
        return "GetTopologyHints", pod, _containers(pod, args.pod)[args.container]

    def unsupported(self, call: PlayedCall) -> NotExpressibleError:
        """Returns the error for a call that the package can't show."""
        verb = call.step.verb if call.step else "start"
        return NotExpressibleError(f"a test in {self.package} can't show `{verb}`")


class ContainerForm(Form):
    """A form for a policy that releases one container at a time."""

    def remove(self, call: PlayedCall, args: messages.RemoveArgs) -> Iterator[str]:
        del call
        if args.container is None:
            yield from self.forget(args.uid)
            del self.on_node[args.uid]
        else:
            yield self.removal(args.uid, args.container)

    def forget(self, uid: str) -> Iterator[str]:
        for name in self.containers(uid):
            yield self.removal(uid, name)

    @abstractmethod
    def removal(self, uid: str, container: str) -> str:
        """Returns the statement that releases a container's resources."""


# With the Topology Manager


def topology_manager(form: Form, nodes: str) -> Iterator[str]:
    """Yields statements that create the Topology Manager in the variable ``affinity``.

    Args:
        form: the test.
        nodes: the NUMA nodes in Go.
    """
    config = form.config
    arguments = form.arguments(
        "topology NewManager",
        nodes,
        quote(config.get("topologyManagerPolicy", "none")),
        quote(config.get("topologyManagerScope", "container")),
        string_map(config.get("topologyManagerPolicyOptions") or {}),
    )
    call = f"topologymanager.NewManager({arguments})"
    yield from form.attempt("affinity, err", call, "topologymanager.NewManager")


def admission(form: Form, call: PlayedCall, pod: str) -> Iterator[str]:
    """Yields statements that admit a pod through the Topology Manager."""
    operation = [("Operation", "lifecycle.AddOperation")] if form.since("1.36") else []
    attributes = inline("&lifecycle.PodAdmitAttributes", [("Pod", pod), *operation])
    result = f"result := affinity.Admit({form.arguments('topology Admit', attributes)})"
    reason = call.expected.refused
    yield form.assign("pods", active_pods(form))
    if reason:
        wrong = f"result.Admit || result.Reason != {quote(reason)}"
        yield block(f"if {result}; {wrong}", f't.Errorf("Admit() = %+v, want {reason}", result)')
    else:
        yield block(f"if {result}; !result.Admit", 't.Fatalf("Admit() = %+v, want true", result)')


def active_pods(form: Form) -> str:
    """Returns the list of the pods on the node."""
    return inline("[]*v1.Pod", form.on_node.values())


# Policies by themselves


def given_affinity(form: Form, call: PlayedCall) -> Iterator[str]:
    """Yields statements that set the affinity of a pod's containers, if they have one.

    Raises:
        NotExpressibleError: they have different affinities.
    """
    given = affinities(call.answer) or affinities(call.kubelet_answer)
    chosen = {one for one in given.values() if one.numa is not None}
    if len(chosen) > 1:
        raise NotExpressibleError("the containers have different affinities")
    if not chosen and form.has("hint"):
        yield form.assign("hint", "topologymanager.TopologyHint{}")
    for hint in chosen:
        yield from form.mask(hint)
        preferred = str(hint.preferred).lower()
        fields = [("NUMANodeAffinity", "mask"), ("Preferred", preferred)]
        yield form.assign("hint", inline("topologymanager.TopologyHint", fields))
        fake = form.arguments("topology NewFakeManagerWithHint", "&hint")
        made = f"topologymanager.NewFakeManagerWithHint({fake})"
        yield f"policy.(*staticPolicy).affinity = {made}"


def allocation(
    form: Form, call: PlayedCall, pod: str, manifest: Pod, function: str
) -> Iterator[str]:
    """Yields statements that let a policy allocate for each container of a pod in turn."""
    reason = call.expected.refused
    if reason == "TopologyAffinityError":
        raise NotExpressibleError("a refusal by the Topology Manager is not supported")
    if form.config.get("topologyManagerScope") == "pod" and manifest["spec"].get("resources"):
        raise NotExpressibleError("pod-level resources in the `pod` scope are not supported")

    def allocate(container: str) -> str:
        return f"policy.Allocate({form.arguments(function, 'st', pod, container)})"

    containers = _containers(pod, manifest).values()
    if reason is None:
        for container in containers:
            yield from must(allocate(container))
        return
    if len(containers) == 1:
        yield form.assign("err", allocate(*containers))
    else:
        every = f"append({pod}.Spec.InitContainers, {pod}.Spec.Containers...)"
        yield block(
            f"for _, container := range {every}",
            block(f"if err = {allocate('&container')}; err != nil", "break"),
        )
    if reason == "UnexpectedAdmissionError":
        yield block("if err == nil", 't.Errorf("Allocate() succeeded")')
    else:
        yield form.assign("refusal", "admission.Error(nil)")
        yield block(
            f"if !errors.As(err, &refusal) || refusal.Type() != {quote(reason)}",
            f't.Errorf("Allocate() returned %v, want {reason}", err)',
        )


def refusal(call: PlayedCall) -> str:
    """Returns the message of a documented refusal; empty if the pod is admitted."""
    return call.answer.message if isinstance(call.answer, messages.AdmissionRefused) else ""


def _containers(pod: str, manifest: Pod) -> dict[str, str]:
    """Returns pointers to the containers of the pod in a variable, by name, in order."""
    return {
        one["name"]: f"&{pod}.Spec.{field}[{number}]"
        for key, field in literals.CONTAINERS
        for number, one in enumerate(manifest["spec"].get(key) or ())
    }


def must(call: str) -> Iterator[str]:
    """Yields a call whose only result is an error that ends the test."""
    function = call.partition("(")[0].rpartition(".")[2]
    yield block(f"if err := {call}; err != nil", f't.Fatalf("{function}() failed: %v", err)')
