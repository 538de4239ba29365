"""{{ name }} behind numaproof's protocol: fill in `choose_cpus`, claim in HELLO what you add."""

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
    """YOUR POLICY GOES HERE: which `count` of the `free` CPUs a container gets.

    There are enough. `machine` is cAdvisor's MachineInfo: its NUMA nodes, sockets and cores.
    Any will do at level invariants; these are the lowest.
    """
    return set(sorted(free)[:count])


class Node:  # its CPUs, and those that each container of each pod holds
    def start(self, args):
        self.file = self.held = None  # after a refused start every other call is a fault
        if "machine" not in args:
            return {"unsupported": {"what": "discovery"}}
        self.machine, config = args["machine"], args["config"]
        cores = [core for node in self.machine["topology"] or [] for core in node["cores"] or []]
        self.cpus = {cpu for core in cores for cpu in core["thread_ids"]}
        policy = config.get("cpuManagerPolicy", "none")
        if policy not in HELLO["policies"]["cpu"]:
            return {"refused": {"stage": "cpu", "message": f"unknown CPU Manager policy {policy}"}}
        self.static = policy == "static"
        reserved = reserved_cpus(config, self.cpus) if self.static else set()
        if self.static and (not reserved or not reserved <= self.cpus):
            return {"refused": {"stage": "cpu", "message": "static needs a valid reservation"}}
        self.allocatable = self.cpus - reserved
        file = Path(args["state_dir"], "held.json")
        saved = json.loads(file.read_text()) if file.exists() else {}
        there = {pod["metadata"]["uid"] for pod in args.get("pods") or []} if self.static else ()
        self.held = {uid: held for uid, held in saved.items() if uid in there}
        if not self.exclusive() <= self.allocatable:
            return {"refused": {"stage": "cpu", "message": "a pod holds CPUs that are gone"}}
        self.file = file
        cpus = {"all": listed(self.cpus), "allocatable": listed(self.allocatable)}
        return {"ok": {"cpus": cpus, "memory": []}}

    def admit(self, args):
        uid, spec = args["pod"]["metadata"]["uid"], args["pod"]["spec"]
        if spec.get("initContainers") or spec.get("resources"):
            return {"unsupported": {"what": "init containers and pod-level resources"}}
        held = self.held.setdefault(uid, {})
        for container in spec["containers"]:
            if container["name"] in held:
                continue  # admitted again after a restart
            count = exclusive_count(spec, container) if self.static else 0
            free = self.allocatable - self.exclusive()
            if count > len(free):
                del self.held[uid]
                message = f"{container['name']} needs {count} CPUs, {len(free)} are free"
                return {"refused": {"reason": "UnexpectedAdmissionError", "message": message}}
            held[container["name"]] = sorted(choose_cpus(count, free, self.machine))
        return {"ok": {"containers": self.shown(held)}}

    def remove(self, args):
        if "container" in args:
            self.held[args["uid"]][args["container"]] = []
        else:
            self.held.pop(args["uid"], None)
        return {"ok": {}}

    def state(self, _args):
        pods = {uid: self.shown(held) for uid, held in self.held.items()}
        return {"ok": {"shared": listed(self.cpus - self.exclusive()), "pods": pods}}

    def exclusive(self):
        return {cpu for held in self.held.values() for cpus in held.values() for cpu in cpus}

    def shown(self, held):
        shared = listed(self.cpus - self.exclusive()) if self.static else ""  # none pins nothing
        rest = {"memory": [], "affinity": {"numa": None, "preferred": False}}
        return {
            name: {"cpus": listed(cpus) or shared, "exclusive": listed(cpus), **rest}
            for name, cpus in held.items()
        }


def reserved_cpus(config, cpus):
    """The CPUs kept for the system: those named, else as many as are reserved, lowest first."""
    if named := config.get("reservedSystemCPUs"):
        spans = [part.split("-") for part in named.split(",")]
        return {cpu for span in spans for cpu in range(int(span[0]), int(span[-1]) + 1)}
    amounts = [config.get(key) or {} for key in ("kubeReserved", "systemReserved")]
    count = math.ceil(sum(round(quantity(one.get("cpu", 0)), 3) for one in amounts))
    return set(sorted(cpus)[:count]) if count <= len(cpus) else set()


def exclusive_count(spec, container):
    """How many exclusive CPUs a container gets: whole CPUs, in Guaranteed pods only."""
    for resources in [one.get("resources") or {} for one in spec["containers"]]:
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for limit, name in [(quantity(limits.get(name, 0)), name) for name in ("cpu", "memory")]:
            if not limit or quantity(requests.get(name, limit)) != limit:
                return 0
    cpus = quantity(container["resources"]["limits"]["cpu"])
    return int(cpus) if cpus.denominator == 1 else 0


def quantity(text):  # 1500m, 2Gi or 1e3
    number, letter, binary = re.fullmatch(r"(.*?)([numkKMGTPE]?)(i?)", str(text)).groups()
    power = "num kMGTPE".index(letter.replace("K", "k") or " ") - 3
    return Fraction(number) * Fraction(1024 if binary else 1000) ** power


def listed(cpus):
    return ",".join(map(str, sorted(cpus)))


def main():
    node = Node()
    for line in sys.stdin:
        request = json.loads(line)
        operation = request["op"]
        try:
            if operation == "hello":
                answer = {"ok": HELLO}
            elif operation in HELLO["operations"]:
                answer = getattr(node, operation)(request["args"])
                node.file.write_text(json.dumps(node.held)) if node.file else None
            else:
                answer = {"unsupported": {"what": f"operation {operation}"}}
        except Exception as error:
            answer = {"fault": {"message": repr(error), "trace": traceback.format_exc()}}
        print(json.dumps({"id": request["id"], **answer}), flush=True)


if __name__ == "__main__":
    main()
