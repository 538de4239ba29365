"""Mutants of the CPU Manager's startup."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.protocol import messages
from numaproof.protocol.releases import NEWEST
from numaproof.reference import startup
from numaproof.reference.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.config import configuration, cpulist
from numaproof.reference.config.options import OptionError
from numaproof.reference.cpu import options
from numaproof.reference.deviations import releases
from numaproof.reference.errors import StartError
from numaproof.reference.node import StartedNode
from quality.seeding import Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


seeds = SubjectBugs("cpu-start")


# Unknown options


@seeds("CPU-CONFIG-004").around(options, "parse")
def unknown_options_may_be_off(rule: Any, policy_options: Any, available: Any) -> Any:
    """Accepts unknown options that are set to false."""
    return rule(
        policy_options={
            name: text
            for name, text in policy_options.items()
            if name in available or text != "false"
        }
    )


@seeds("CPU-CONFIG-004", kubernetes="1.31")
def options_of_later_releases_are_known(changes: Changes) -> None:
    """Accepts options that only later releases know."""
    newest = releases.TABLE[NEWEST].cpu_options

    def parse(rule: Any, available: Any) -> Any:
        try:
            return rule()
        except OptionError:
            return rule(available={**newest, **available})

    changes.around(options, "parse", parse)


# Values of options


@shape(options, "boolean")
def _also_booleans(read: Callable[[str], bool | None], rule: Any, value: str) -> Any:
    """Accepts values for which `read` returns a boolean; None leaves the original parsing."""
    found = read(value)
    return rule() if found is None else found


@seeds("CPU-CONFIG-005").by(_also_booleans)
def numbers_are_booleans(text: str) -> Any:
    """Parses zero as false and any other number as true."""
    return int(text) != 0 if re.fullmatch("[0-9]+", text) else None


@seeds("CPU-CONFIG-005")
def booleans_may_have_spaces_around_them(changes: Changes) -> None:
    """Ignores spaces around values."""
    words = {"true": True, "false": False}
    _also_booleans(changes, lambda text: words.get(text.strip()))


@shape(options, "boolean")
def _no_booleans(forms: Collection[str], rule: Any, name: str, value: str) -> Any:
    """Refuses the values in `forms`."""
    if value in forms:
        problem = f'strconv.ParseBool: parsing "{value}": invalid syntax'
        raise OptionError(f'bad value for option "{name}": {problem}')
    return rule()


@seeds("CPU-CONFIG-006").of(_no_booleans, ("1", "0"))
def digits_are_no_booleans() -> None:
    """Refuses 0 and 1."""


@seeds("CPU-CONFIG-006").of(_no_booleans, ("t", "T", "f", "F"))
def single_letters_are_no_booleans() -> None:
    """Refuses single letters."""


@seeds("CPU-CONFIG-006").of(_no_booleans, ("T", "F"))
def capital_letters_are_no_booleans() -> None:
    """Refuses capital letters."""


@seeds("CPU-CONFIG-006").of(_no_booleans, ("TRUE", "FALSE"))
def words_in_capitals_are_no_booleans() -> None:
    """Refuses words in capital letters."""


@seeds("CPU-CONFIG-006").of(_no_booleans, ("True", "False"))
def words_with_a_capital_are_no_booleans() -> None:
    """Refuses words that start with a capital letter."""


@seeds("CPU-CONFIG-006").of(_no_booleans, ("0", "f", "F"))
def only_the_words_are_booleans_of_the_negative() -> None:
    """Refuses every form of false except for the words."""


# Options set to false


def _on_when_it_is_mentioned(changes: Changes, option: str) -> None:
    changes.around(options, "value", lambda rule, name: rule() or name == option)


@seeds("CPU-CONFIG-007").of(_on_when_it_is_mentioned, options.ACROSS_NUMA)
def distribute_cpus_across_numa_is_on_when_it_is_mentioned() -> None:
    """Turns distribute-cpus-across-numa on if it is listed, even as false."""


@seeds("CPU-CONFIG-007").of(_on_when_it_is_mentioned, options.BY_SOCKET)
def align_by_socket_is_on_when_it_is_mentioned() -> None:
    """Turns align-by-socket on if it is listed, even as false."""


@seeds("CPU-CONFIG-007").of(_on_when_it_is_mentioned, options.BY_UNCORE)
def prefer_align_by_uncorecache_is_on_when_it_is_mentioned() -> None:
    """Turns prefer-align-cpus-by-uncorecache on if it is listed, even as false."""


# CPUs reserved by name


def _other_lists(changes: Changes, change: Callable[[str], str]) -> None:
    """Lets `change` edit CPU lists before they are parsed."""
    changes.around(cpulist, "parse", lambda rule, text: rule(text=change(text)))


@seeds("CPU-CONFIG-008").of(_other_lists, lambda text: text.replace(" ", ""))
def reserved_cpus_may_have_spaces() -> None:
    """Ignores spaces in the list of reserved CPUs."""


@seeds("CPU-CONFIG-008").by(_other_lists)
def reserved_cpus_may_end_in_a_comma(text: str) -> Any:
    """Ignores empty parts in the list of reserved CPUs."""
    return ",".join(part for part in text.split(",") if part)


# The none policy


@seeds("CPU-NONE-001").after(configuration, "load")
def unnamed_policy_is_static_where_cpus_are_reserved(config: Any, kubelet_config: Any) -> Any:
    """Defaults to the static policy if CPUs are reserved."""
    reserves = config.named_cpus or "cpu" in {**config.kube_reserved, **config.system_reserved}
    if kubelet_config.get("cpuManagerPolicy") or not reserves:
        return config
    return replace(config, cpu_policy="static")


@seeds("CPU-NONE-001").after(configuration, "load")
def empty_policy_name_is_an_unknown_policy(config: Any, kubelet_config: Any) -> Any:
    """Refuses an empty policy name instead of using the default."""
    return (
        replace(config, cpu_policy="") if kubelet_config.get("cpuManagerPolicy") == "" else config
    )


@seeds("CPU-NONE-001")
def unnamed_policy_is_the_one_of_the_checkpoint(changes: Changes) -> None:
    """Defaults to the policy in the checkpoint."""
    starts = changes.record_argument(startup, "start", "args")

    def keep_policy(config: Any, kubelet_config: Any) -> Any:
        # The harness also loads configurations, to find out which claims a case needs.
        files = [Path(args.state_dir) / cpu_checkpoint.FILE_NAME for args in starts[-1:]]
        was_static = any(file.exists() and b'"static"' in file.read_bytes() for file in files)
        if kubelet_config.get("cpuManagerPolicy") or not was_static:
            return config
        return replace(config, cpu_policy="static")

    changes.after(configuration, "load", keep_policy)


@seeds("CPU-NONE-005").after(StartedNode, "start_answer")
def none_policy_reports_every_cpu_as_allocatable(answer: Any, self: Any) -> Any:
    """Reports all CPUs as allocatable under the none policy."""
    if self.setup.cpu:
        return answer
    cpus = msgspec.structs.replace(answer.cpus, allocatable=self.setup.topology.all_cpus)
    return msgspec.structs.replace(answer, cpus=cpus)


@seeds("CPU-NONE-006")
def none_policy_writes_every_cpu_as_the_default_set(changes: Changes) -> None:
    """Writes all CPUs as the default set under the none policy."""
    setups = changes.record_argument(startup, "start_cpus", "setup")

    def dump(rule: Any, state: Any, policy: str) -> Any:
        if policy == "none" and setups:
            state = replace(state, shared=setups[-1].topology.cpus)
        return rule(state=state)

    def restore(state: Any, policy: str) -> Any:
        return replace(state, shared=0) if policy == "none" else state

    changes.around(cpu_checkpoint, "dump", dump)
    changes.after(cpu_checkpoint, "restore", restore)


@seeds("CPU-NONE-007").after(StartedNode, "reconcile")
def none_policy_reconciles_containers_with_every_cpu(answer: Any, self: Any) -> Any:
    """Updates every container to all CPUs under the none policy."""
    if self.setup.cpu:
        return answer
    updates = []
    for pod in self.pods.values():
        for container in pod.containers:
            place = (pod.uid, container.name)
            if place not in self.ended_containers and place not in self.runtime_cpus:
                self.runtime_cpus[place] = 0
                updates.append(messages.CPUUpdate(*place, self.setup.topology.all_cpus))
    return messages.Reconciled(tuple(updates))


# The policy's name, and options under the none policy


@seeds("CPU-CONFIG-001").around(startup, "make_cpu_policy")
def policy_none_is_refused_beside_a_topology_policy(rule: Any, config: Any) -> Any:
    """Refuses the none policy together with a topology policy."""
    if config.cpu_policy == "none" and config.topology_policy != "none":
        raise StartError("cpu", 'unknown policy: "none"')
    return rule()
