"""The errors that say what is wrong with a user's input, from all parts of the project."""

from __future__ import annotations

from numaproof.conformance.cases.errors import CaseError
from numaproof.conformance.cases.releases import ConstraintError
from numaproof.conformance.differential.recordings import RecordingError
from numaproof.conformance.promotion.rehearsal import PromotionError
from numaproof.fakesys import DocumentError, ProfileError, TreeError, WriteError
from numaproof.fleet.journal import JournalError
from numaproof.folders.output_folder import FolderInUseError
from numaproof.reference.cadvisor.discovery import DiscoveryError
from numaproof.reference.departures.releases import UnknownReleaseError
from numaproof.reports.files import EventsError
from numaproof.simulation.admission import CannotAnswerError
from numaproof.simulation.devices import DevicesError
from numaproof.simulation.upgrades.state_files import NoStateError

INPUT_ERRORS = (
    CannotAnswerError,
    CaseError,
    ConstraintError,
    DevicesError,
    DiscoveryError,
    DocumentError,
    EventsError,
    FolderInUseError,
    JournalError,
    NoStateError,
    ProfileError,
    PromotionError,
    RecordingError,
    TreeError,
    UnknownReleaseError,
    WriteError,
)
"""What can be wrong with a user's input; each error's message says what to fix."""
