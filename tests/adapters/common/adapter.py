"""A minimal adapter: it assigns the lowest CPUs, and gives one answer of every other kind."""

from protocol import Refusal, UnsupportedOperation, cpu_list, cpu_set, serve

HELLO = {
    "protocol": 1,
    "name": "lowest",
    "version": "1",
    "language": "Python",
    "kubernetes": ["1.37"],
    "level": "invariants",
    "operations": ["assign"],
    "policies": {},
    "options": {},
}


def assign(args: dict) -> dict:
    if args.get("options"):
        raise UnsupportedOperation("options")
    available, count = sorted(cpu_set(args["available"])), args["count"]
    print("foreign code prints what it likes")  # noqa: T201 - as it may
    if count > len(available):
        raise Refusal("not enough")
    if count < 0:
        raise ValueError("a negative count")
    return {"cpus": cpu_list(available[:count])}


serve(HELLO, {"assign": assign})
