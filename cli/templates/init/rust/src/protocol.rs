//! The protocol, with the parts of Kubernetes and cAdvisor that it uses. Complete; no need to edit.

use crate::json::{self, Json, object, text};
use std::backtrace::Backtrace;
use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;

pub type CpuSet = BTreeSet<u32>;

static PANIC: Mutex<(String, String)> = Mutex::new((String::new(), String::new()));

/// Answers requests until standard input ends; a panic becomes a fault with its trace.
pub fn serve(mut answer: impl FnMut(&str, &Json) -> Json) {
    panic::set_hook(Box::new(|broken| {
        let trace = Backtrace::force_capture().to_string();
        *PANIC.lock().unwrap() = (broken.to_string(), trace);
    }));
    for line in io::stdin().lock().lines() {
        let request = json::parse(&line.expect("requests are UTF-8"));
        let call = || answer(request["op"].text(), &request["args"]);
        let answered = panic::catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
            let (message, trace) = &*PANIC.lock().unwrap();
            let fault = object([("message", text(message)), ("trace", text(trace))]);
            object([("fault", fault)])
        });
        let Json::Object(mut fields) = answered else { unreachable!("answers are objects") };
        fields.insert("id".into(), request["id"].clone());
        println!("{}", Json::Object(fields));
        io::stdout().flush().expect("the harness reads answers");
    }
}

pub fn ok(value: Json) -> Json {
    object([("ok", value)])
}

pub fn unsupported(what: &str) -> Json {
    object([("unsupported", object([("what", text(what))]))])
}

/// A refusal of a start (at a `stage`) or of a pod (for a `reason`).
pub fn refused(field: &str, why: &str, message: &str) -> Json {
    object([("refused", object([(field, text(why)), ("message", text(message))]))])
}

/// The CPUs of a MachineInfo.
pub fn cpus_of(machine: &Json) -> CpuSet {
    let cores = machine["topology"].items().iter().flat_map(|node| node["cores"].items());
    cores.flat_map(|core| core["thread_ids"].items()).map(|cpu| cpu.number() as u32).collect()
}

/// The CPUs that can be exclusive.
pub fn allocatable_cpus(config: &Json, cpus: &CpuSet) -> Result<CpuSet, Json> {
    match config["cpuManagerPolicy"].text() {
        "" | "none" => Ok(CpuSet::new()),
        "static" => {
            let reserved = reserved_cpus(config, cpus);
            if reserved.is_empty() || !reserved.is_subset(cpus) {
                return Err(refused("stage", "cpu", "static needs a valid reservation"));
            }
            Ok(cpus - &reserved)
        }
        other => Err(refused("stage", "cpu", &format!("unknown CPU Manager policy {other}"))),
    }
}

/// The CPUs reserved for the system: those in reservedSystemCPUs, or the lowest ones.
fn reserved_cpus(config: &Json, cpus: &CpuSet) -> CpuSet {
    let named = config["reservedSystemCPUs"].text();
    if !named.is_empty() {
        return parsed(named);
    }
    let amounts = ["kubeReserved", "systemReserved"].map(|field| &config[field]["cpu"]);
    let thousandths: f64 = amounts.map(|amount| (quantity(amount) * 1000.0).round()).iter().sum();
    let count = (thousandths / 1000.0).ceil() as usize;
    if count > cpus.len() { CpuSet::new() } else { cpus.iter().take(count).copied().collect() }
}

/// How many exclusive CPUs a container gets: only whole CPUs, only in Guaranteed pods.
pub fn exclusive_count(pod: &Json, container: &Json) -> usize {
    let limited = |one: &Json| {
        let both = [amounts(one, "cpu"), amounts(one, "memory")];
        both.iter().all(|&(request, limit)| limit > 0.0 && request == limit)
    };
    let guaranteed = match pod["status"]["qosClass"].text() {
        "" => pod["spec"]["containers"].items().iter().all(limited), // derive it from the resources
        given => given == "Guaranteed",
    };
    let (cpus, _) = amounts(container, "cpu");
    if guaranteed && cpus.fract() == 0.0 { cpus as usize } else { 0 }
}

/// The request (default: the limit) and the limit of a resource.
fn amounts(container: &Json, resource: &str) -> (f64, f64) {
    let [request, limit] = ["requests", "limits"].map(|kind| &container["resources"][kind][resource]);
    (quantity(if *request == Json::Null { limit } else { request }), quantity(limit))
}

/// Parses an amount such as 1500m, 2Gi or 1e3; null is 0.
fn quantity(amount: &Json) -> f64 {
    let written = match amount {
        Json::Null => return 0.0,
        Json::Text(text) => text.clone(),
        other => other.to_string(),
    };
    let (number, binary) = written.strip_suffix('i').map_or((&*written, false), |rest| (rest, true));
    let power =
        number.chars().last().and_then(|last| "num kMGTPE".find(if last == 'K' { 'k' } else { last }));
    let value = |number: &str| number.parse::<f64>().expect("a quantity");
    match power.map(|place| place as i32 - 3) {
        None => value(number),
        Some(power) if binary => value(&number[..number.len() - 1]) * 1024f64.powi(power),
        Some(power) => value(&format!("{}e{}", &number[..number.len() - 1], 3 * power)),
    }
}

/// Parses the Linux list format, such as 0-3,8.
pub fn parsed(list: &str) -> CpuSet {
    let number = |text: &str| text.parse::<u32>().expect("a CPU list");
    let parts = list.split(',').filter(|part| !part.is_empty());
    parts
        .flat_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            number(first)..=number(last)
        })
        .collect()
}

/// Writes the Linux list format.
pub fn listed(cpus: &CpuSet) -> Json {
    text(&cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","))
}
