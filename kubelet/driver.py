"""The protocol's operations on a real kubelet process.

The driver plays everything around the kubelet: the API server that has the pods, the runtime that
runs them and the device plugins. Every operation ends with an event that the kubelet causes: a
line of its log, a request to the API server, a call of the runtime, or the end of the process.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from numaproof.conformance.cases.machine_properties import Facts
from numaproof.formats.machines import kubelet_log
from numaproof.kubelet import (
    last_words,
    log_events,
    metrics,
    pod_resources,
    pods,
    runtime_check,
    settings,
)
from numaproof.kubelet.api_server import DISKS, ROOM, ApiServer, Store
from numaproof.kubelet.bound_pods import BoundPod
from numaproof.kubelet.effective_config import in_force
from numaproof.kubelet.launch import STATE_DIR
from numaproof.kubelet.log_events import LogEvents
from numaproof.kubelet.node_plugins import NodePlugins
from numaproof.kubelet.node_state import NodeState
from numaproof.kubelet.pod_resources import Resources
from numaproof.kubelet.process import KubeletExitedError, KubeletProcess
from numaproof.kubelet.runtime import MISSING_IMAGE, Runtime, serve
from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet
from numaproof.reference.deviations.releases import release

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Coroutine, Sequence

    from numaproof.kubelet.api_server import Change, Object
    from numaproof.kubelet.runtime import Container
    from numaproof.reference.pods.pod_level import PodRules

_Answer = TypeVar("_Answer")

_PROBES = 2
_PROBE = "numaproof-probe-"
_PASSES = 3
"""A pass of the reconcile loop is over when it skips a container once more. The next pass repeats
the updates that the runtime has refused."""


class Driver:
    """Runs one kubelet after another on a simulated node.

    Args:
        binary: the kubelet.
        release: its minor release, such as `(1, 37)`.
        folder: what a run writes, apart from the state directory, is in it.
        arguments: added to the kubelet's command line.
    """

    def __init__(
        self, binary: Path, release: tuple[int, int], folder: Path, arguments: tuple[str, ...] = ()
    ) -> None:
        self._binary = binary
        self._release = release
        self._folder = folder
        self._static_pods = folder / settings.STATIC_PODS
        self._arguments = arguments
        self._change = asyncio.Event()
        self._store = Store(on_change=self._on_object)
        self._api = ApiServer(self._store)
        self._runtime = Runtime(on_change=self._change.set, ends_at_once=self._ends_at_once)
        self._server: Any = None
        self._kubelet: KubeletProcess | None = None
        self._state = NodeState(folder)
        self._events = LogEvents(self._on_admission, self._on_affinity)
        self._pods: dict[str, BoundPod] = {}
        self._pod_count = 0
        self._had_larger_pool: set[str] = set()
        self._probes = 0
        self._earlier_probes = 0
        self._scope = ""
        self._plugins = NodePlugins()
        self._has_devices = False
        self._last_cpusets: dict[tuple[str, str], str] = {}
        self._seen_requests = 0
        self._earlier_uids: set[str] = set()
        self._tell: tuple[str, ...] = ()
        self._level_rules: type[PodRules] | None = None
        self._has_whole_pods = False
        self._allocatable: tuple[CPUSet, tuple[messages.MemoryBlock, ...]] = CPUSet(), ()
        self._check_node = False

    @property
    def _version(self) -> str:
        """The kubelet's minor release, such as ``1.37``."""
        return "{}.{}".format(*self._release)

    async def open(self) -> None:
        """Starts the API server and the runtime."""
        self._static_pods.mkdir(exist_ok=True)
        await self._api.start()
        self._server = await serve(self._runtime, self._folder / settings.RUNTIME_SOCKET)

    async def close(self) -> None:
        """Ends everything."""
        await self._stop_kubelet()
        await self._api.stop()
        if self._server is not None:
            await self._server.stop(0)

    # What happens

    def _ends_at_once(self, uid: str, name: str) -> bool:
        pod = self._pods.get(uid)
        return pod is not None and pod.is_initialized and pods.runs_once(pod.manifest, name)

    def _on_object(self, plural: str, change: Change) -> None:
        kind, value = change
        if plural == "pods" and kind == "DELETED":
            self._events.leaving.add(pods.full_name(value))
        self._change.set()

    def _on_line(self, text: str) -> None:
        self._events.note(text)
        self._change.set()

    def _on_admission(self, uid: str, victims: Sequence[str]) -> None:
        if uid in self._pods:
            self._pods[uid].is_admitted = True
            self._pods[uid].victims = victims

    def _on_affinity(self, name: str, container: str, preference: messages.Hint) -> None:
        for pod in self._pods.values():
            if pod.name == name:
                pod.affinity[container] = preference

    async def _until(self, ready: Callable[[], object], what: str) -> None:
        """Waits until something is so; each event is a reason to look again.

        Raises:
            KubeletExitedError: the kubelet ended first.
            RuntimeError: there is no kubelet.
        """
        if self._kubelet is None:
            raise RuntimeError("no kubelet is running")
        try:
            await self._kubelet.until(ready, self._change, what)
        except KubeletExitedError:
            self._kubelet = None
            raise

    async def _answer_of(self, call: Coroutine[Any, Any, _Answer]) -> _Answer:
        """Waits for the kubelet's answer to a call, which never comes from one that has ended.

        Raises:
            KubeletExitedError: the kubelet ended first.
        """
        answer = asyncio.create_task(call)
        answer.add_done_callback(lambda _: self._change.set())
        try:
            await self._until(answer.done, "answered a call")
        finally:
            answer.cancel()
        return answer.result()

    # Starting and stopping

    async def start(self, args: messages.StartArgs, tree: Path) -> messages.Answer:
        """Starts the kubelet on a machine's tree, with the pods that are on the node.

        Unless they are `running`, no container runs yet, as after a reboot.
        """
        running = None if args.running is None else frozenset(args.running)
        if running is not None:
            await self._run_apps(running)
        # Service managers restart a kubelet with SIGTERM; SIGKILL stands in for a reboot.
        await self._stop_kubelet(signal.SIGKILL if running is None else signal.SIGTERM)
        self._state = NodeState(Path(args.state_dir))
        if running is not None:
            self._survive(running)
        else:
            self._reboot()
        self._forget_process()
        self._tell, self._check_node = args.tell, args.check_node
        self._api.room = DISKS if args.check_node else ROOM
        self._earlier_probes = self._probes
        self._scope = str(args.config.get("topologyManagerScope") or "container")
        gates = pods.enabled_gates(args.config, args.flags, self._version)
        self._level_rules = pods.level_rules(gates, self._version)
        self._has_whole_pods = gates.get("PodLevelResourceManagers", False)
        new = [pod for pod in args.pods if pod["metadata"]["uid"] not in self._pods]
        for pod in new:
            if not messages.is_static(pod):
                self._bind(pod)
        held = self._api.hold("pods")
        await self._launch(args, tree)
        try:
            await self._until(self._is_ready, "become ready")
            for report in args.devices:
                await self._report(report)
            owners = self._state.cpu_owners()
            for pod in filter(messages.is_static, new):
                await self._decided(self._bind(pod))
            held.set()
            for bound in list(self._pods.values()):
                await self._decided(bound)
            self._had_larger_pool = self._before_last_of(self._state.cpu_owners() - owners)
            if running is not None:
                await self._until(
                    lambda: self._admitted() <= self._events.synced_pods, "looked at its pods"
                )
                self._has_devices = self._has_devices or self._state.has_devices()
            await self._free_stale()
            answer = await self._started()
        except KubeletExitedError as error:
            await self._plugins.stop()
            return self._refused(error)
        return answer

    def _before_last_of(self, uids: set[str]) -> set[str]:
        """The pods that the kubelet admitted before the last of these."""
        # Static pods come first; the others are in the order of their creation.
        order = sorted(self._pods, key=lambda uid: not self._pods[uid].is_static)
        last = max((order.index(uid) for uid in uids if uid in self._pods), default=0)
        return {*order[:last]}

    def _refused(self, error: KubeletExitedError) -> messages.Answer:
        """Why the kubelet did not start; paths are those outside of its namespace.

        A kubelet always checks the node's allocatable resources, even if nobody asked for it.
        """
        log = str(error).replace(str(STATE_DIR), str(self._state.folder))
        refused = last_words.refusal(log, error.code)
        if last_words.is_about_allocatable(refused) and not self._check_node:
            return messages.Unsupported("reservations beyond the machine's capacity")
        return refused

    async def _launch(self, args: messages.StartArgs, tree: Path) -> None:
        logs = self._folder / "log"
        logs.mkdir(exist_ok=True)
        tells_config = "effective-configuration" in args.tell
        config = settings.configuration(
            args.config, self._release, self._folder, own_period=tells_config
        )
        options = settings.write(self._folder, config, self._api.port)
        command = [str(self._binary), *options, *args.flags, *self._arguments]
        folders = (tree, self._state.folder, self._folder)
        self._kubelet = await KubeletProcess.start(command, folders, self._on_line)

    def _reboot(self) -> None:
        """Ends and forgets everything on the node."""
        for pod in self._pods.values():
            pod.discard()
        self._store.clear()
        self._runtime.clear()
        self._pods = {}

    async def _run_apps(self, uids: frozenset[str]) -> None:
        """Ends the init containers of pods, and waits until all other containers run."""
        for uid in uids & self._pods.keys():
            self._initialize(self._pods[uid])
        if self._kubelet is not None:
            await self._until(self._knows_what_runs, "started the containers")

    def _survive(self, uids: frozenset[str]) -> None:
        """Keeps the pods whose containers run on without the kubelet; all others left the node."""
        for uid, pod in list(self._pods.items()):
            if uid in uids:
                self._pods[uid] = BoundPod(
                    self._store,
                    self._static_pods,
                    pod.manifest,
                    is_initialized=True,
                    completions=pod.completions,
                )
            else:
                pod.discard()
                del self._pods[uid]
        for container in self._runtime.containers.values():
            container.resources_at_creation = None
        self._store.delete("nodes", "", settings.NODE)

    def _forget_process(self) -> None:
        """Forgets what concerned the last kubelet process."""
        self._events = LogEvents(self._on_admission, self._on_affinity)
        self._has_devices = False
        self._last_cpusets.clear()
        self._earlier_uids.clear()
        self._seen_requests = len(self._runtime.requests)

    def _is_ready(self) -> bool:
        """Whether the node is ready, and all parts of the kubelet that are asked later."""
        node = self._store.get("nodes", "", settings.NODE) or {}
        conditions = node.get("status", {}).get("conditions", [])
        return (
            any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
            and (self._state.pod_resources_socket / "kubelet.sock").exists()
            and self._state.plugin_socket.exists()
        )

    async def _started(self) -> messages.Started:
        self._allocatable = free, memory = await self._answer_of(
            pod_resources.read_allocatable(self._state.pod_resources_socket)
        )
        every = Facts(kubelet_log.parse(self._events.machine)).all
        cpus = messages.StartedCPUs(every, free)
        tells_config = "effective-configuration" in self._tell
        return messages.Started(
            cpus, memory, await self._answer_of(in_force()) if tells_config else None
        )

    async def _stop_kubelet(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Ends the kubelet with a signal, and the plugins with it."""
        if self._kubelet is not None:
            await self._kubelet.end(number)
            self._kubelet = None
        await self._plugins.stop()

    async def discover(self, tree: Path) -> messages.Answer:
        """Starts a kubelet on a tree until it has logged the machine."""
        await self._stop_kubelet()
        folder = self._folder / "discovery"
        folder.mkdir(exist_ok=True)
        self._state = NodeState(folder)
        self._reboot()
        self._forget_process()
        await self._launch(messages.StartArgs({}, str(folder)), tree)
        try:
            await self._until(lambda: self._events.machine, "discovered the machine")
        except KubeletExitedError as error:
            return self._refused(error)
        await self._stop_kubelet()
        return kubelet_log.parse(self._events.machine)

    # Pods

    def _bind(self, pod: messages.Pod) -> BoundPod:
        made = BoundPod(
            self._store, self._static_pods, pods.bind(pod, self._pod_count, self._level_rules)
        )
        self._pod_count += 1
        self._earlier_uids.add(pod["metadata"]["uid"])
        self._pods[pod["metadata"]["uid"]] = made
        if not self._check_node:
            self._api.make_room(pods.extended_resources(made.manifest))
        made.bind()
        return made

    async def admit(self, args: messages.AdmitArgs) -> messages.Answer:
        """Binds a pod to the node, and waits for what the kubelet makes of it."""
        uid = args.pod["metadata"]["uid"]
        pod = self._pods.get(uid)
        if messages.is_static(args.pod) and "refused-pods" in self._tell:
            return messages.Unsupported("the status of a static pod that was refused")
        if pod is None:
            if uid in self._earlier_uids:
                await self._forget(uid)
            pod = self._bind(args.pod)
            await self._decided(pod)
        elif pod.is_answered:
            return messages.Unsupported("admit a pod again: a kubelet admits it once after a start")
        elif uid in self._had_larger_pool and self._shares(uid):
            return messages.Unsupported("the shared pool between two admissions of a start")
        pod.is_answered = True
        if pod.refusal is None:
            if "quota" in self._tell:
                if self._pins_init_memory(pod):
                    self._discard(pod)
                    await self._free_stale()
                    return messages.Unsupported(
                        "the quota of a pod whose init containers hold memory"
                    )
                self._initialize(pod)
                await self._until(lambda: self._quotas(uid), f"created the containers of {uid}")
            preempted = await self._preempted(pod)
            return messages.Admitted(self._containers(uid), preempted)
        answer = pod.refusal
        if "refused-pods" in self._tell:
            answer = replace(answer, pod=await self._failed(pod))
        self._discard(pod)
        await self._free_stale()
        return answer

    def _pins_init_memory(self, pod: BoundPod) -> bool:
        """Whether init containers of a pod hold memory, which they lose as soon as they end."""
        return any(
            one.memory and pods.runs_once(pod.manifest, name)
            for name, one in self._containers(pod.uid).items()
        )

    def _shares(self, uid: str) -> bool:
        """Whether a container of a pod runs on the shared pool."""
        return any(one.cpus and not one.exclusive for one in self._containers(uid).values())

    async def _preempted(self, pod: BoundPod) -> tuple[messages.PreemptedPod, ...]:
        """Takes the pods off the node that the kubelet has preempted for a pod."""
        named = {one.name: one for one in self._pods.values()}
        victims = [named[name] for name in pod.victims]
        pod.victims = ()
        found = []
        for one in victims:
            uid = one.uid
            outcome = await self._failed(one)
            found.append(messages.PreemptedPod(uid, outcome.reason, outcome.message))
            self._discard(one)
        if victims:
            await self._free_stale()
        return tuple(found)

    def _discard(self, pod: BoundPod) -> None:
        pod.discard()
        self._drop(pod.uid)

    async def _failed(self, pod: BoundPod) -> messages.RefusedPod:
        """Waits for the status of a failed pod and for its event."""
        await self._until(pod.outcome, f"reported the status of pod {pod.name}")
        outcome = pod.outcome()
        assert outcome is not None
        return outcome

    async def _decided(self, pod: BoundPod) -> None:
        """Waits until the kubelet has admitted or rejected a pod."""
        await self._until(pod.is_decided, f"decided on pod {pod.name}")

    def _quotas(self, uid: str) -> dict[str, bool] | None:
        """By container: whether the runtime limits it; None until all are created."""
        created = {
            one.place[1]: one.resources.get("cpu_quota", 0) > 0
            for one in self._runtime.requests
            if one.place[0] == uid and one.operation == "create"
        }
        return created if created.keys() >= {*pods.names(self._pods[uid].manifest)} else None

    def _containers(self, uid: str, *, has_devices: bool | None = None) -> messages.Containers:
        """What a pod's containers have, with devices only if a plugin has reported."""
        pod = self._pods[uid]
        return self._state.containers(
            pod.manifest,
            pod.affinity,
            has_devices=self._has_devices if has_devices is None else has_devices,
            quotas=self._quotas(uid) if "quota" in self._tell else None,
        )

    async def resize(self, args: messages.ResizeArgs) -> messages.Answer:
        """Requests other resources for a pod, and waits for the kubelet's decision.

        A kubelet without cgroups panics when it changes containers that run. So it can't sync the
        pod until it has decided and has lost the pod's containers; then it starts new ones. (It
        still panics if they have to wait for init containers.) A refused request is withdrawn, so
        that the kubelet doesn't try again later.
        """
        uid = args.pod["metadata"]["uid"]
        pod = self._pods.get(uid)
        if pod is None:
            return messages.Fault(f"no pod {uid!r} is on the node")
        if pod.is_static:
            return messages.Unsupported("a resize of a static pod")
        if "resources" in args.pod["spec"]:
            return messages.Unsupported("a resize of a pod with pod-level resources")
        self._initialize(pod)
        await self._until(lambda: self._runs(pod), f"started the containers of {uid}")
        if pods.has_init_containers(pod.manifest):
            # Withdrawing an accepted one makes kubelets panic.
            return messages.Unsupported("a resize of a pod with init containers")
        before = pod.current()
        with self._state.unusable_pod_folder(uid):
            self._store.put("pods", pods.with_resources_of(before, pods.bind(args.pod, 0)))
            await self._until(
                lambda: self._has_allocated(pod) or pod.pending_resize(), f"resized pod {uid}"
            )
            refusal = pod.pending_resize()
            if refusal is None:
                lost = self._runtime.lose(uid)
                await self._until(
                    lambda: not lost & pod.running_ids(), f"lost the containers of {uid}"
                )
        if refusal is None:
            pod.manifest = pods.with_mark(pod.current())
            self._store.put("pods", pod.manifest)
            await self._until(lambda: self._runs(pod), f"restarted the containers of {uid}")
            return messages.Admitted(self._containers(uid))
        await self._withdraw(pod, before)
        return messages.AdmissionRefused(refusal["reason"], refusal["message"])

    async def _withdraw(self, pod: BoundPod, before: Object) -> None:
        """Restores what a pod requested, and waits until the kubelet has forgotten the resize."""
        self._store.put("pods", pods.with_resources_of(pod.current(), before))
        await self._until(
            lambda: self._has_allocated(pod) and not pod.pending_resize(),
            f"kept the resources of {pod.name}",
        )

    def _runs(self, pod: BoundPod) -> bool:
        """Whether the containers of a pod run, and the API server knows about it."""
        uid = pod.uid
        running = {one.place[1]: one.id for one in self._runtime.running() if one.place[0] == uid}
        reported = pod.running_ids()
        return all(
            running.get(name) in reported
            for name in pods.names(pod.manifest)
            if not pods.runs_once(pod.manifest, name)
        )

    def _has_allocated(self, pod: BoundPod) -> bool:
        """Whether the kubelet has allocated what a pod requests."""
        allocated = self._state.allocated(pod.uid)
        wanted = pods.amounts(pod.current())
        return {name: wanted[name] for name in allocated} == allocated

    async def remove(self, args: messages.RemoveArgs) -> messages.Answer:
        """Deletes a pod, and waits until its resources are free."""
        if args.container is not None:
            return messages.Unsupported("remove a container: a kubelet frees what a pod has")
        pod = self._pods.get(args.uid)
        if pod is None:
            return messages.Done()
        with self._runtime.holding(args.uid):
            lost = await self._lost_while_ending(pod)
        await self._until(lambda: not pod.current(), f"removed pod {args.uid}")
        self._drop(args.uid)
        await self._free_stale()
        if lost:
            return messages.Fault(
                f"pod {args.uid} lost its resources in {', '.join(sorted(lost))}"
                " while its containers still ran"
            )
        return messages.Done()

    def _drop(self, uid: str) -> None:
        """Forgets a pod that has left the node, and what the runtime was told about it."""
        del self._pods[uid]
        for place in [one for one in self._last_cpusets if one[0] == uid]:
            del self._last_cpusets[place]

    async def end(self, args: messages.EndArgs) -> messages.Answer:
        """Ends a container, and waits until the kubelet has noticed.

        After an init container, the next container starts. After the last app container, the pod is
        complete, and the kubelet frees its resources although the pod still exists.
        """
        pod = self._pods[args.uid]
        if not pods.ends(pod.manifest, args.container):
            return messages.Unsupported("the end of a container that the kubelet starts again")
        await self._until(self._knows_what_runs, "started the containers")
        for one in list(self._runtime.running()):
            if one.place == (args.uid, args.container):
                pod.completions.add(args.container)
                self._runtime.end(one)
        await self._until(self._knows_what_runs, "started the next containers")
        await self._until(
            lambda: "terminated" in pod.container_states().get(args.container, {}),
            f"reported the end of {args.uid}/{args.container}",
        )
        if pod.completions >= {one["name"] for one in pod.manifest["spec"]["containers"]}:
            await self._until(
                lambda: pod.current()["status"]["phase"] == "Succeeded", f"completed {args.uid}"
            )
            self._drop(args.uid)
            await self._free_stale()
            pod.request_deletion()
        return messages.Done()

    async def _lost_while_ending(self, pod: BoundPod) -> set[str]:
        """Deletes a pod; the checkpoint files that no longer name it while its containers run."""
        uid = pod.uid
        before = self._state.files_naming(uid)
        pod.request_deletion()
        await self._until(
            lambda: uid in self._runtime.stopping or not pod.current(), f"stopped pod {uid}"
        )
        # A kubelet forgets a static pod as soon as its file is gone (seen in 1.30 and 1.37).
        if not before or uid not in self._runtime.stopping or pod.is_static:
            return set()
        await self._probe()
        return before - self._state.files_naming(uid)

    async def _forget(self, uid: str) -> None:
        """Waits until the kubelet has forgotten a pod that is gone.

        Kubernetes never reuses a pod's uid. A kubelet that still knows it would take the new pod
        for the old one.
        """
        await self._until(lambda: not self._events.leaving, "noticed that pods are gone")
        for message in (log_events.CLEANUP_BEGINS, log_events.CLEANUP_ENDS):
            await self._more(self._events.cleanups, message, "cleaned up after its pods")
        await self._until(lambda: uid not in self._events.workers, f"forgotten pod {uid}")

    async def _more(self, counter: Counter[str], name: str, what: str) -> None:
        """Waits until an event happens once more."""
        before = counter[name]
        await self._until(lambda: counter[name] > before, what)

    async def _free_stale(self) -> None:
        """Lets the kubelet admit a pod without requests if the state names pods that are gone.

        The managers free what a pod had when the next one comes; after a start, when the next but
        one comes, because the kubelet admits the first before it knows all pods.
        """
        for _ in range(_PROBES):
            if not self._state.uids() <= self._admitted():
                await self._probe()

    def _admitted(self) -> set[str]:
        return {uid for uid, pod in self._pods.items() if pod.is_admitted}

    async def _probe(self) -> None:
        await self._remove_probe(await self._admit_probe("image"))

    async def _admit_probe(self, image: str) -> BoundPod:
        """Lets the kubelet admit a pod without requests."""
        self._probes += 1
        name = f"{_PROBE}{self._probes}"
        spec = {"containers": [{"name": "probe", "image": image}]}
        pod = self._bind({"metadata": {"name": name, "uid": name}, "spec": spec})
        await self._decided(pod)
        return pod

    async def _remove_probe(self, pod: BoundPod) -> None:
        """Deletes such a pod; waits for its end only if the kubelet counts the pods on the node."""
        if pod.refusal is not None:
            self._discard(pod)
            return
        del self._pods[pod.uid]
        pod.request_deletion()
        if self._check_node:
            name = pod.name
            await self._until(lambda: not pod.current(), f"removed pod {name}")

    # The node

    async def devices(self, args: messages.DevicesArgs) -> messages.Answer:
        """Lets the device plugins report new lists."""
        for report in args.devices:
            await self._report(report)
        return messages.Done()

    async def _report(self, report: messages.DeviceResource) -> None:
        """Lets a plugin report, and waits until the kubelet knows."""
        leaves = self._plugins.leaves(report, self._state)
        event = (
            log_events.PLUGIN_LEFT if leaves else log_events.DEVICES_PROCESSED,
            report.resource,
        )
        before = self._events.device_updates[event]
        self._has_devices = True
        await self._plugins.report(report, self._state, leaves=leaves)
        await self._until(
            lambda: self._events.device_updates[event] > before, f"the devices of {report.resource}"
        )

    def _initialize(self, pod: BoundPod) -> None:
        """Ends a pod's init containers, so that its app containers start."""
        pod.is_initialized = True
        for one in self._running_init_containers():
            if self._pods[one.place[0]] is pod:
                self._runtime.end(one)

    def _running_init_containers(self) -> list[Container]:
        return [
            one
            for one in self._runtime.running()
            if one.place[0] in self._pods
            and pods.runs_once(self._pods[one.place[0]].manifest, one.place[1])
        ]

    async def reconcile(self) -> messages.Answer:
        """The CPUs that the runtime was told since the last time, after one more pass.

        Each init container ends after the runtime has been told its CPUs, so that the next
        container can start.
        """
        while True:
            await self._until(self._knows_what_runs, "started the containers")
            if not await self._pass():
                return messages.Unsupported("reconcile a node that has no room for another pod")
            if not (initial := self._running_init_containers()):
                break
            for one in initial:
                self._runtime.end(one)
            await self._next_started(len(self._runtime.containers))
        new = self._runtime.requests[self._seen_requests :]
        self._seen_requests = len(self._runtime.requests)
        last = {
            one.place: one.resources["cpuset_cpus"]
            for one in new
            if one.resources.get("cpuset_cpus")
        }
        changed = {
            place: cpus for place, cpus in last.items() if self._last_cpusets.get(place) != cpus
        }
        self._last_cpusets |= changed
        return messages.Reconciled(
            tuple(
                messages.CPUUpdate(uid, name, CPUSet.parse(changed[uid, name]))
                for uid, pod in self._pods.items()
                for name in pods.names(pod.manifest)
                if (uid, name) in changed and name not in pod.completions
            )
        )

    async def _next_started(self, before: int) -> None:
        await self._until(
            lambda: len(self._runtime.containers) > before, "started the next containers"
        )

    async def _pass(self) -> bool:
        """Waits for a whole pass of the reconcile loop, if there is anything to reconcile.

        Each pass logs that it skips the container of a pod without an image. Returns whether the
        node has room for that pod.
        """
        if self._state.policy() != "static" or not any(self._runtime.running()):
            return True
        pod = await self._admit_probe(MISSING_IMAGE)
        if pod.refusal is None:
            name = pod.name
            await self._until(lambda: self._events.skips[name] >= _PASSES, "reconciled the CPUs")
        await self._remove_probe(pod)
        return pod.refusal is None

    def _knows_what_runs(self) -> bool:
        """Whether the kubelet has started what it can, and reported it to the API server."""
        running = {one.place for one in self._runtime.running()}
        return self._reported_running() >= running and all(
            self._is_settled(pod, {name for of, name in running if of == uid})
            for uid, pod in self._pods.items()
        )

    @staticmethod
    def _is_settled(pod: BoundPod, running: set[str]) -> bool:
        """Whether a pod runs an init container that has to end, or everything else."""
        names = {*pods.names(pod.manifest)}
        once = {name for name in names if pods.runs_once(pod.manifest, name)}
        return bool(once & running) or running >= names - once - pod.completions

    def _reported_running(self) -> set[tuple[str, str]]:
        """The containers that run, according to the statuses of pods."""
        return {
            (uid, name)
            for uid, pod in self._pods.items()
            for name, state in pod.container_states().items()
            if "running" in state
        }

    async def state(self) -> messages.Answer:
        """What the checkpoint files say, with which podresources and the runtime must agree."""
        containers = {uid: self._containers(uid) for uid in self._pods}
        for source, problems in (
            ("podresources", await self._answer_of(self._pod_resources())),
            ("the runtime", self._runtime_problems(containers)),
        ):
            if problems:
                message = f"{source} disagrees with the checkpoint files"
                return messages.Fault(message, "\n".join(problems))
        shared, files = self._state.shared(), self._state.files()
        told = await self._metrics() if "metrics" in self._tell else None
        return messages.State(shared, containers, files, told)

    def _runtime_problems(self, containers: dict[str, messages.Containers]) -> list[str]:
        """How the requests to the runtime and the plugins differ from the checkpoint files."""
        prepared_files = self._plugins.prepared_files()
        return [*runtime_check.disagreements(self._runtime.existing(), containers, prepared_files)]

    async def _metrics(self) -> dict[str, int]:
        """The managers' metrics, without the driver's own pods.

        The managers free what pods had before they admit the next one, so its admission shows that
        the metrics are up to date.
        """
        await self._probe()
        known = release(self._version)
        found = await self._answer_of(metrics.read(known.metrics))
        return metrics.without_probes(found, self._probes - self._earlier_probes, self._scope)

    async def _pod_resources(self) -> list[str]:
        """Where podresources disagrees with the checkpoint files."""
        expected = {
            pods.place(one.manifest): self._state.pod_resources(
                one.manifest, self._release, has_whole=self._has_whole_pods
            )
            for one in self._pods.values()
        }
        cpus, memory = self._allocatable
        allocatable = Resources(cpus, frozenset(memory), self._plugins.healthy())
        return await pod_resources.disagreements(
            self._state.pod_resources_socket, expected, allocatable
        )
