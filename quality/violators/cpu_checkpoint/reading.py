"""Violators of the requirements of the CPU Manager's checkpoint: how a file is judged at start."""

from __future__ import annotations

from typing import Any

from numaproof.reference.kubelet.checkpoints import cpu, files, formats
from numaproof.reference.kubelet.checkpoints.files import CheckpointError
from numaproof.reference.kubelet.checkpoints.formats import Format, Formats, UnreadableError
from quality.checkpoint_changes import parsed
from quality.seeding import Changes, SubjectBugs
from quality.violators.cpu_checkpoint.format import (
    format_read,
    restored,
)

seeds = SubjectBugs("cpu-checkpoint")

SPACE = b" \t\r\n"
KNOWN = frozenset(
    {"policyname", "defaultcpuset", "entries", "podentries", "checksum", "data", "datachecksum"}
)


# The checksum that is read


@seeds("CPU-CHECKPOINT-005")
def wrong_cpu_checksum_without_entries_is_taken(changes: Changes) -> None:
    """A plausible author verifies only what there is to lose."""
    changes.around(
        Format,
        "takes",
        lambda original, self, found: (
            original(self, found)
            or (self.structure.startswith("state.CPU") and not found["entries"])
        ),
    )


@seeds("CPU-CHECKPOINT-005")
def wrong_cpu_checksum_begins_afresh(changes: Changes) -> None:
    """A plausible author throws a damaged checkpoint away."""

    def restore(original: Any, content: bytes, policy: str, running: Any, known: Any) -> Any:
        try:
            return original(content, policy, running, known)
        except CheckpointError as error:
            if str(error) != formats.CORRUPTED:
                raise
            return known.empty

    restored(changes, restore)


@seeds("CPU-CHECKPOINT-005")
def wrong_cpu_checksum_is_called_a_mismatch(changes: Changes) -> None:
    """A plausible author words the error in his own way."""

    def read(original: Any, self: Format, content: bytes) -> Any:
        try:
            return original(self, content)
        except UnreadableError as error:
            if str(error) != formats.CORRUPTED:
                raise
            raise UnreadableError("checkpoint checksum mismatch", error.found) from None

    format_read(changes, read)


@seeds("CPU-CHECKPOINT-006")
def missing_cpu_checksum_is_wrong(changes: Changes) -> None:
    """A plausible author wants the field, and takes any zero in it."""

    def read(original: Any, self: Format, content: bytes) -> Any:
        found = original(self, content)
        if all(name.lower() != "checksum" for name in parsed(content)):
            raise UnreadableError(formats.CORRUPTED, found)
        return found

    format_read(changes, read)


@seeds("CPU-CHECKPOINT-006")
def zero_cpu_checksum_is_wrong(changes: Changes) -> None:
    """A plausible author passes over a field that is missing, and compares any that is there."""

    def read(original: Any, self: Format, content: bytes) -> Any:
        found = original(self, content)
        if parsed(content).get("checksum") == 0:
            raise UnreadableError(formats.CORRUPTED, found)
        return found

    format_read(changes, read)


# Unknown fields and white space


def _unknown(content: bytes) -> list[str]:
    return [name for name in parsed(content) if name.lower() not in KNOWN]


@seeds("CPU-CHECKPOINT-010")
def unknown_field_of_cpu_checkpoint_is_refused(changes: Changes) -> None:
    """A plausible author decodes strictly."""

    def restore(original: Any, content: bytes, *rest: Any) -> Any:
        for name in _unknown(content):
            raise CheckpointError(f'json: unknown field "{name}"')
        return original(content, *rest)

    restored(changes, restore)


@seeds("CPU-CHECKPOINT-010")
def unknown_field_counts_in_the_cpu_checksum(changes: Changes) -> None:
    """A plausible author hashes the whole document that was read."""

    def read(original: Any, self: Format, content: bytes) -> Any:
        found = original(self, content)
        if found["checksum"] and _unknown(content):
            raise UnreadableError(formats.CORRUPTED, found)
        return found

    format_read(changes, read)


@seeds("CPU-CHECKPOINT-011")
def newline_after_cpu_checkpoint_is_refused(changes: Changes) -> None:
    """A plausible author wants the file to end with the JSON."""

    def restore(original: Any, content: bytes, *rest: Any) -> Any:
        if content.strip(SPACE) and content[-1:] in SPACE:
            raise CheckpointError(r"invalid character '\n' after top-level value")
        return original(content, *rest)

    restored(changes, restore)


@seeds("CPU-CHECKPOINT-011")
def space_before_cpu_checkpoint_is_refused(changes: Changes) -> None:
    """A plausible author wants the file to begin with a brace."""

    def restore(original: Any, content: bytes, *rest: Any) -> Any:
        if content.strip(SPACE) and content[:1] in SPACE:
            raise CheckpointError("invalid character ' ' looking for beginning of value")
        return original(content, *rest)

    restored(changes, restore)


# Another policy


def _foreign(changes: Changes, configured: str, found: str, *, kept: bool) -> None:
    """Lets a start with the policy `configured` take the checkpoint of the policy `found`."""

    def restore(original: Any, content: bytes, policy: str, running: Any, known: Any) -> Any:
        try:
            return original(content, policy, running, known)
        except CheckpointError as error:
            if policy != configured or "differs from state checkpoint policy" not in str(error):
                raise
            state = original(content, found, running, known)
            return state if kept else known.empty

    restored(changes, restore)


@seeds("CPU-CHECKPOINT-007")
def static_policy_takes_the_checkpoint_of_none(changes: Changes) -> None:
    """A plausible author sees that there is nothing to lose in the state of policy none."""
    _foreign(changes, "static", "none", kept=False)


@seeds("CPU-CHECKPOINT-007")
def policy_none_takes_the_checkpoint_of_static(changes: Changes) -> None:
    """A plausible author sees that policy none has no use for the state."""
    _foreign(changes, "none", "static", kept=True)


@seeds("CPU-CHECKPOINT-007")
def foreign_cpu_policy_is_not_named(changes: Changes) -> None:
    """A plausible author names the configured policy only."""

    def restore(original: Any, content: bytes, policy: str, *rest: Any) -> Any:
        try:
            return original(content, policy, *rest)
        except CheckpointError as error:
            if "differs from state checkpoint policy" not in str(error):
                raise
            raise CheckpointError(
                f'configured policy "{policy}" differs from state checkpoint policy'
            ) from None

    restored(changes, restore)


# What is no checkpoint


@seeds("CPU-CHECKPOINT-008")
def empty_cpu_checkpoint_counts_as_missing(changes: Changes) -> None:
    """A plausible author treats an empty file as none."""
    restored(
        changes,
        lambda original, content, policy, running, known: (
            original(content, policy, running, known) if content.strip(SPACE) else known.empty
        ),
    )


@seeds("CPU-CHECKPOINT-008")
def truncated_cpu_checkpoint_is_called_corrupt(changes: Changes) -> None:
    """A plausible author reports a file that breaks off as he reports a wrong checksum."""

    def restore(original: Any, content: bytes, *rest: Any) -> Any:
        try:
            return original(content, *rest)
        except CheckpointError as error:
            if not content or str(error) != "unexpected end of JSON input":
                raise
            raise CheckpointError(formats.CORRUPTED) from None

    restored(changes, restore)


@seeds("CPU-CHECKPOINT-008")
def cpu_checkpoint_that_is_no_json_begins_afresh(changes: Changes) -> None:
    """A plausible author begins afresh with a file in which there is no JSON at all."""

    def restore(original: Any, content: bytes, policy: str, running: Any, known: Any) -> Any:
        if content.strip(SPACE) and content.strip(SPACE)[:1] != b"{":
            return known.empty
        return original(content, policy, running, known)

    restored(changes, restore)


@seeds("CPU-CHECKPOINT-009")
def wrong_type_names_the_format_before_the_last(changes: Changes) -> None:
    """A plausible author keeps an error until the next format works, and reports an early one."""

    def read(original: Any, self: Formats, content: bytes) -> Any:
        try:
            return original(self, content)
        except CheckpointError as error:
            if not isinstance(self, cpu.CPUFormats) or "cannot unmarshal" not in str(error):
                raise
            try:
                self.attempts[-2].read(content)
            except UnreadableError as earlier:
                raise CheckpointError(str(earlier)) from None
            raise

    changes.around(Formats, "read", read)


@seeds("CPU-CHECKPOINT-009")
def cpu_checksum_may_be_a_text(changes: Changes) -> None:
    """A plausible author reads a number in quotes as the number."""

    def read(original: Any, self: Format, content: bytes) -> Any:
        document = parsed(content)
        text = document.get("checksum")
        if isinstance(text, str) and text.isdecimal():
            return original(self, files.encode({**document, "checksum": int(text)}))
        return original(self, content)

    format_read(changes, read)


@seeds("CPU-CHECKPOINT-009")
def list_of_cpu_entries_counts_as_none(changes: Changes) -> None:
    """A plausible author passes over entries that are no map."""

    def read(original: Any, self: Format, content: bytes) -> Any:
        document = parsed(content)
        if isinstance(document.get("entries"), list):
            return original(self, files.encode({**document, "entries": {}}))
        return original(self, content)

    format_read(changes, read)
