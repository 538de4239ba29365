//! Adapter for {{ name }}: fill in `choose_cpus`. When you implement more, claim it in `HELLO`.

mod json;
mod protocol;

use json::{Json, list, object};
use protocol::{CpuSet, listed, ok, refused, unsupported};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const HELLO: &str = r#"{
    "protocol": 1, "name": "{{ name }}", "version": "0.1.0", "language": "Rust",
    "kubernetes": ["{{ kubernetes }}"], "level": "invariants",
    "operations": ["start", "admit", "remove", "state"],
    "policies": {"cpu": ["none", "static"]}, "options": {},
    "features": ["container-removal", "restart"]
}"#;

/// YOUR POLICY GOES HERE: chooses `count` of the `free` CPUs; there are always enough.
/// `machine` is cAdvisor's MachineInfo. At level invariants, any choice is correct.
fn choose_cpus(count: usize, free: &CpuSet, _machine: &Json) -> CpuSet {
    free.iter().take(count).copied().collect()
}

/// The node's CPUs and their assignments to containers.
struct Node {
    file: PathBuf,
    machine: Json,
    is_static: bool,
    managed: CpuSet, // empty under the none policy
    allocatable: CpuSet,
    held: BTreeMap<String, BTreeMap<String, CpuSet>>,
}

fn main() {
    let mut node: Option<Node> = None;
    protocol::serve(move |operation, args| {
        if operation == "start" {
            node = None; // if the start is refused, all other calls are faults
            return Node::start(args, &mut node).unwrap_or_else(|answer| answer);
        }
        let answer = match (operation, &mut node) {
            ("hello", _) => return ok(json::parse(HELLO)),
            ("admit", Some(node)) => node.admit(&args["pod"]),
            ("remove", Some(node)) => node.remove(args["uid"].text(), &args["container"]),
            ("state", Some(node)) => node.state(),
            ("admit" | "remove" | "state", None) => panic!("the node has not started"),
            _ => return unsupported(&format!("operation {operation}")),
        };
        node.iter().for_each(Node::save);
        answer
    })
}

impl Node {
    fn start(args: &Json, place: &mut Option<Node>) -> Result<Json, Json> {
        let (machine, config) = (args["machine"].clone(), &args["config"]);
        if machine == Json::Null {
            return Err(unsupported("discovery"));
        }
        let cpus = protocol::cpus_of(&machine);
        let allocatable = protocol::allocatable_cpus(config, &cpus)?;
        let is_static = config["cpuManagerPolicy"].text() == "static";
        let managed = if is_static { cpus.clone() } else { CpuSet::new() };
        let file = Path::new(args["state_dir"].text()).join("held.json");
        let saved = fs::read_to_string(&file).ok().filter(|_| is_static);
        let saved = saved.map_or(Json::Null, |written| json::parse(&written));
        let mut held = BTreeMap::new();
        for pod in args["pods"].items() {
            let uid = pod["metadata"]["uid"].text(); // a running pod: it is admitted again later
            let names = pod["spec"]["containers"].items().iter().map(|one| one["name"].text());
            let own = names.map(|name| (name.to_string(), protocol::parsed(saved[uid][name].text())));
            held.insert(uid.to_string(), own.collect());
        }
        let shown = object([("all", listed(&cpus)), ("allocatable", listed(&allocatable))]);
        let node = Node { file, machine, is_static, managed, allocatable, held };
        if !node.exclusive().is_subset(&node.allocatable) {
            return Err(refused("stage", "cpu", "a pod's CPUs are not allocatable"));
        }
        node.save();
        *place = Some(node);
        Ok(ok(object([("cpus", shown), ("memory", list([]))])))
    }

    fn admit(&mut self, pod: &Json) -> Json {
        let (uid, spec) = (pod["metadata"]["uid"].text(), &pod["spec"]);
        if !spec["initContainers"].items().is_empty() || spec["resources"] != Json::Null {
            return unsupported("init containers and pod-level resources");
        }
        self.held.entry(uid.to_string()).or_default();
        for container in spec["containers"].items() {
            let name = container["name"].text();
            if self.held[uid].get(name).is_some_and(|own| !own.is_empty()) {
                continue; // admitted before: the container keeps its CPUs
            }
            let free = &self.allocatable - &self.exclusive();
            let count = if self.is_static { protocol::exclusive_count(pod, container) } else { 0 };
            if count > free.len() {
                self.held.remove(uid);
                let message = format!("{name}: CPUs requested: {count}, free: {}", free.len());
                return refused("reason", "UnexpectedAdmissionError", &message);
            }
            let chosen = choose_cpus(count, &free, &self.machine);
            self.held.entry(uid.to_string()).or_default().insert(name.to_string(), chosen);
        }
        ok(object([("containers", self.shown(&self.held[uid]))]))
    }

    fn remove(&mut self, uid: &str, container: &Json) -> Json {
        match (container, self.held.get_mut(uid)) {
            (Json::Text(name), Some(held)) => drop(held.insert(name.clone(), CpuSet::new())),
            _ => drop(self.held.remove(uid)),
        }
        ok(object([]))
    }

    fn state(&self) -> Json {
        let pods = self.held.iter().map(|(uid, held)| (uid.as_str(), self.shown(held)));
        ok(object([("shared", listed(&(&self.managed - &self.exclusive()))), ("pods", object(pods))]))
    }

    fn exclusive(&self) -> CpuSet {
        self.held.values().flat_map(BTreeMap::values).flatten().copied().collect()
    }

    fn shown(&self, held: &BTreeMap<String, CpuSet>) -> Json {
        object(held.iter().map(|(name, own)| {
            let cpus = if own.is_empty() { &self.managed - &self.exclusive() } else { own.clone() };
            let affinity = object([("numa", Json::Null), ("preferred", Json::Bool(false))]);
            let own = [("cpus", listed(&cpus)), ("exclusive", listed(own))];
            (name.as_str(), object(own.into_iter().chain([("memory", list([])), ("affinity", affinity)])))
        }))
    }

    fn save(&self) {
        let pods = self.held.iter().map(|(uid, held)| {
            (uid.as_str(), object(held.iter().map(|(name, own)| (name.as_str(), listed(own)))))
        });
        fs::write(&self.file, object(pods).to_string()).expect("the state directory can be written");
    }
}
