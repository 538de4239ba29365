"""Errors that users can fix, in their input or on their machine."""

from __future__ import annotations

from numaproof.campaign.journal import JournalError
from numaproof.collection.collecting import NothingCollectedError
from numaproof.conformance.cases.loading import CaseError
from numaproof.conformance.cases.releases import ConstraintError
from numaproof.conformance.check import ParallelError
from numaproof.conformance.differential.recordings import RecordingError
from numaproof.conformance.promotion import PromotionError
from numaproof.fakesys import DocumentError, ProfileError, TreeError, WriteError
from numaproof.inputs.errors import DocumentErrors
from numaproof.reference.cadvisor.discovery import DiscoveryError
from numaproof.reference.deviations.releases import UnknownReleaseError
from numaproof.reports.files import EventsError
from numaproof.simulation.admission import CannotAnswerError
from numaproof.simulation.devices import DevicesError
from numaproof.simulation.state_files import NoStateError
from numaproof.simulation.what_ifs import PodExistsError, UnknownPodError
from numaproof.workdir.output_folder import FolderInUseError
from numaproof.workdir.scratch import ScratchError

INPUT_ERRORS = (
    CannotAnswerError,
    CaseError,
    ConstraintError,
    DevicesError,
    DiscoveryError,
    DocumentError,
    DocumentErrors,
    EventsError,
    FolderInUseError,
    JournalError,
    NoStateError,
    NothingCollectedError,
    ParallelError,
    PodExistsError,
    ProfileError,
    PromotionError,
    RecordingError,
    ScratchError,
    TreeError,
    UnknownPodError,
    UnknownReleaseError,
    WriteError,
)
"""Errors that end a command with exit code 2. Their messages explain what to fix."""
