"""Adapter for {{ name }}: fill in `choose_cpus`. When you implement more, claim it in HELLO."""

import json
import math
import re
import sys
import traceback
from fractions import Fraction
from pathlib import Path

HELLO = {
    "protocol": 1,
    "name": "{{ name }}",
    "version": "0.1.0",
    "language": "Python",
    "kubernetes": ["{{ kubernetes }}"],
    "level": "invariants",
    "operations": ["start", "admit", "remove", "state"],
    "policies": {"cpu": ["none", "static"]},
    "options": {},
    "features": ["container-removal", "restart"],
}


def choose_cpus(count, free, machine):
    """YOUR POLICY GOES HERE: chooses `count` of the `free` CPUs; there are always enough.

    `machine` is cAdvisor's MachineInfo. At level invariants, any choice is correct.
    """
    return set(sorted(free)[:count])


class Node:  # the node's CPUs and their assignments to containers
    def start(self, args):
        self.file = self.assignments = None  # if the start is refused, all other calls are faults
        if not args.get("machine"):
            return {"unsupported": {"what": "discovery"}}
        self.machine, config = args["machine"], args["config"]
        cores = [core for node in self.machine["topology"] or [] for core in node["cores"] or []]
        cpus = {cpu for core in cores for cpu in core["thread_ids"]}
        policy = config.get("cpuManagerPolicy", "none")
        if policy not in HELLO["policies"]["cpu"]:
            return {"refused": {"stage": "cpu", "message": f"unknown CPU Manager policy {policy}"}}
        self.static = policy == "static"
        reserved = reserved_cpus(config, cpus) if self.static else set()
        if self.static and (not reserved or not reserved <= cpus):
            return {"refused": {"stage": "cpu", "message": "static needs a valid reservation"}}
        self.managed_cpus = cpus if self.static else set()  # the none policy pins nothing
        self.allocatable = self.managed_cpus - reserved
        file = Path(args["state_dir"], "held.json")
        saved = json.loads(file.read_text()) if self.static and file.exists() else {}
        self.assignments = {}
        for pod in args.get("pods") or []:  # running pods, which are admitted again later
            held = saved.get(pod["metadata"]["uid"], {})
            names = [container["name"] for container in pod["spec"]["containers"]]
            self.assignments[pod["metadata"]["uid"]] = {name: held.get(name, []) for name in names}
        if not self.exclusive() <= self.allocatable:
            return {"refused": {"stage": "cpu", "message": "a pod's CPUs are not allocatable"}}
        self.file = file
        shown = {"all": cpu_list(cpus), "allocatable": cpu_list(self.allocatable)}
        return {"ok": {"cpus": shown, "memory": []}}

    def admit(self, args):
        uid, spec = args["pod"]["metadata"]["uid"], args["pod"]["spec"]
        if spec.get("initContainers") or spec.get("resources"):
            return {"unsupported": {"what": "init containers and pod-level resources"}}
        held = self.assignments.setdefault(uid, {})
        for container in spec["containers"]:
            if held.get(container["name"]):
                continue  # admitted before: the container keeps its CPUs
            count = exclusive_count(args["pod"], container) if self.static else 0
            free = self.allocatable - self.exclusive()
            if count > len(free):
                del self.assignments[uid]
                message = f"{container['name']}: CPUs requested: {count}, free: {len(free)}"
                return {"refused": {"reason": "UnexpectedAdmissionError", "message": message}}
            held[container["name"]] = sorted(choose_cpus(count, free, self.machine))
        return {"ok": {"containers": self.containers(held)}}

    def remove(self, args):
        if args.get("container"):
            self.assignments[args["uid"]][args["container"]] = []
        else:
            self.assignments.pop(args["uid"], None)
        return {"ok": {}}

    def state(self, _args):
        pods = {uid: self.containers(held) for uid, held in self.assignments.items()}
        return {"ok": {"shared": cpu_list(self.managed_cpus - self.exclusive()), "pods": pods}}

    def exclusive(self):
        return {cpu for held in self.assignments.values() for cpus in held.values() for cpu in cpus}

    def containers(self, assignments):
        pool = cpu_list(self.managed_cpus - self.exclusive())
        rest = {"memory": [], "affinity": {"numa": None, "preferred": False}}
        cpus = {name: cpu_list(own) for name, own in assignments.items()}
        return {key: {"cpus": own or pool, "exclusive": own, **rest} for key, own in cpus.items()}


def reserved_cpus(config, cpus):
    """The CPUs reserved for the system: those in reservedSystemCPUs, or the lowest ones."""
    if named := config.get("reservedSystemCPUs"):
        spans = [part.split("-") for part in named.split(",")]
        return {cpu for span in spans for cpu in range(int(span[0]), int(span[-1]) + 1)}
    amounts = [config.get(key) or {} for key in ("kubeReserved", "systemReserved")]
    count = math.ceil(sum(round(quantity(one.get("cpu", 0)), 3) for one in amounts))
    return set(sorted(cpus)[:count]) if count <= len(cpus) else set()


def exclusive_count(pod, container):
    """How many exclusive CPUs a container gets: only whole CPUs, only in Guaranteed pods."""
    pairs = [amounts(one, name) for one in pod["spec"]["containers"] for name in ("cpu", "memory")]
    qos = (pod.get("status") or {}).get("qosClass")
    guaranteed = qos == "Guaranteed" if qos else all(limit and ask == limit for ask, limit in pairs)
    cpus, _ = amounts(container, "cpu")
    return int(cpus) if guaranteed and cpus.denominator == 1 else 0


def amounts(container, name):  # the request (default: the limit) and the limit of a resource
    both = [(container.get("resources") or {}).get(kind) or {} for kind in ("requests", "limits")]
    limit = both[1].get(name, 0)
    return quantity(both[0].get(name, limit)), quantity(limit)


def quantity(text):  # 1500m, 2Gi or 1e3
    number, letter, binary = re.fullmatch(r"(.*?)([numkKMGTPE]?)(i?)", str(text)).groups()
    power = "num kMGTPE".index(letter.replace("K", "k") or " ") - 3
    return Fraction(number) * Fraction(1024 if binary else 1000) ** power


def cpu_list(cpus):
    return ",".join(map(str, sorted(cpus)))


if __name__ == "__main__":
    node = Node()
    for line in sys.stdin:
        request = json.loads(line)
        operation = request["op"]
        answer = {"unsupported": {"what": f"operation {operation}"}}
        try:
            if operation == "hello":
                answer = {"ok": HELLO}
            elif operation in HELLO["operations"]:
                answer = getattr(node, operation)(request["args"])
                node.file.write_text(json.dumps(node.assignments)) if node.file else None
        except Exception as error:
            answer = {"fault": {"message": repr(error), "trace": traceback.format_exc()}}
        print(json.dumps({"id": request["id"], **answer}), flush=True)
