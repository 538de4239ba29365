"""The reference as a release that notes what is asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from numaproof.reference.departures.releases import Release
from numaproof.reference.implementation import Reference
from numaproof.reference.kubelet.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.kubelet.checkpoints import memory as memory_checkpoint
from numaproof.reference.kubelet.fields import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.kubelet.checkpoints.formats import Formats
    from numaproof.reference.noting.notes import Notes

Rule = TypeVar("Rule")
Fact = TypeVar("Fact")


class _Keyed(Mapping[Any, Any]):
    """A mapping, or a set, of which it is noted what is looked up."""

    def __init__(self, notes: Notes, of: Mapping[str, Any]) -> None:
        self._notes = notes
        self.of = of

    def __contains__(self, key: object) -> bool:
        self._notes.compare({release: key in one for release, one in self.of.items()})
        return key in self.of[self._notes.played]

    def __getitem__(self, key: object) -> Any:
        self._notes.compare({release: one.get(key) for release, one in self.of.items()})
        return self.of[self._notes.played][key]

    def get(self, key: object, default: Any = None) -> Any:
        """The value of a key, or the default."""
        self._notes.compare({release: one.get(key, default) for release, one in self.of.items()})
        return self.of[self._notes.played].get(key, default)

    def __iter__(self) -> Iterator[Any]:
        self._notes.compare(self.of)
        return iter(self.of[self._notes.played])

    def __len__(self) -> int:
        self._notes.compare(self.of)
        return len(self.of[self._notes.played])


class _Text:
    """A text of which it is noted that it is looked at; it can be in no other way than these."""

    def __init__(self, notes: Notes, of: Mapping[str, str]) -> None:
        self._notes = notes
        self._of = of

    def _read(self) -> str:
        self._notes.compare(self._of)
        return self._of[self._notes.played]

    def __eq__(self, other: object) -> bool:
        return self._read() == other

    def __hash__(self) -> int:
        return hash(self._read())

    def startswith(self, prefix: str) -> bool:
        """See `str.startswith`."""
        return self._read().startswith(prefix)

    def format(self, **fields: str) -> str:
        """See `str.format`."""
        return self._read().format(**fields)


class _Formats:
    """The formats of a file, of which it is noted what is read by them, and apart what is written.

    Who only writes a file gets to know nothing from it.
    """

    def __init__(self, notes: Notes, name: str, of: Mapping[str, Formats]) -> None:
        self._notes = notes
        self._name = name
        self._of = of
        self.written = self

    def write(self, content: Mapping[str, Any]) -> bytes:
        """See `numaproof.reference.kubelet.checkpoints.formats.Format.write`."""
        texts: dict[int, bytes] = {}
        said: dict[str, bytes] = {}
        for release, formats in self._of.items():
            form = formats.written
            if id(form) not in texts:
                texts[id(form)] = form.write(dict(content))
            said[release] = texts[id(form)]
        self._notes.files.append((self._name, said))
        return said[self._notes.played]

    def __getattr__(self, name: str) -> Any:
        facts = {release: getattr(one, name) for release, one in self._of.items()}
        self._notes.compare(facts)
        return facts[self._notes.played]


class NotingRelease:
    """Stands for a `Release`, and notes what is asked of it."""

    def __init__(self, notes: Notes, of: Mapping[str, Release]) -> None:
        self._notes = notes
        self._of = of

    def _left(self) -> tuple[str, ...]:
        """The played release, and those that are the same so far."""
        return self._notes.played, *self._notes.same

    def __getattr__(self, name: str) -> Any:
        facts = {one: getattr(self._of[one], name) for one in self._left()}
        own = facts[self._notes.played]
        if isinstance(own, Mapping | frozenset):
            return _Keyed(self._notes, facts)
        return self._told(facts)

    cpu_rules = Release.cpu_rules

    @property
    def hidden_topology_option(self) -> _Text:
        """See `Release`."""
        of = {one: self._of[one].hidden_topology_option for one in self._left()}
        return _Text(self._notes, of)

    def pod_level_under(self, gates: _Keyed) -> _Text:
        """See `Release.pod_level_under`."""
        of = {one: self._of[one].pod_level_under(found) for one, found in gates.of.items()}
        return _Text(self._notes, of)

    def counted(self, reserved: Fraction) -> Fraction:
        """See `Release.counted`."""
        return self._told({one: self._of[one].counted(reserved) for one in self._left()})

    def in_order(self, discovered: MachineInfo) -> MachineInfo:
        """See `Release.in_order`."""
        return self._told({one: self._of[one].in_order(discovered) for one in self._left()})

    def _told(self, facts: Mapping[str, Fact]) -> Fact:
        self._notes.compare(facts)
        return facts[self._notes.played]

    @property
    def cpu_files(self) -> _Formats:
        """See `Release`."""
        of = {one: self._of[one].cpu_files for one in self._left()}
        return _Formats(self._notes, cpu_checkpoint.FILE_NAME, of)

    @property
    def memory_files(self) -> _Formats:
        """See `Release`."""
        of = {one: self._of[one].memory_files for one in self._left()}
        return _Formats(self._notes, memory_checkpoint.FILE_NAME, of)

    def rule(self, documented: type[Rule]) -> type[Rule]:
        """See `Release.rule`."""
        departures = {one: self._of[one].departures for one in self._left()}
        return self._notes.rule(documented, departures)

    def enabled(self, given: Mapping[str, Any]) -> Mapping[str, bool]:
        """See `Release.enabled`."""
        found = {one: self._notes.enabled(self._of[one], given) for one in self._left()}
        own = found[self._notes.played]
        if isinstance(own, ConfigError):
            self._notes.compare({release: repr(one) for release, one in found.items()})
            raise own.with_traceback(None)
        refused = {release for release, one in found.items() if isinstance(one, ConfigError)}
        self._notes.drop(refused)
        return _Keyed(self._notes, {one: found[one] for one in found if one not in refused})

    def under(self, gates: _Keyed) -> NotingRelease:
        """See `Release.under`."""
        of = {release: self._of[release].under(found) for release, found in gates.of.items()}
        return NotingRelease(self._notes, of)


class NotingReference(Reference):
    """The reference, as the release of its notes.

    Args:
        notes: what is noted.
        documented: as for `Reference`.
        exceptions: as for `Reference`.
    """

    def __init__(
        self,
        notes: Notes,
        *,
        documented: bool = False,
        exceptions: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(documented=documented, exceptions=exceptions)
        self._notes = notes

    def _release(self, version: str | None) -> Release:
        notes = self._notes
        if version != notes.played:
            notes.same.clear()
        own = super()._release(version)
        if not notes.same:
            return own
        of = {one: super(NotingReference, self)._release(one) for one in notes.same}
        return cast("Release", NotingRelease(notes, {notes.played: own, **of}))
