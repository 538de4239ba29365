"""CPU assignment alone: no reservation, no affinity, every option open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.protocol.sets import CPUSet
from numaproof.reference.cpu import options as cpu_options
from numaproof.reference.cpu.assignment import NotEnoughCPUsError
from numaproof.reference.cpu.distribution import AccountingError
from numaproof.reference.cpu.policy import SMTAlignmentError, StaticPolicy
from numaproof.reference.cpu.topology import derive
from numaproof.reference.departures.defects import FREE_CORE_BY_AVERAGE
from numaproof.reference.errors import AdmissionError

if TYPE_CHECKING:
    from numaproof.protocol import messages
    from numaproof.reference.departures.releases import Release


def assign(args: messages.AssignArgs, release: Release) -> CPUSet:
    """The CPUs that a request gets out of those available.

    Raises:
        OptionError: the options cannot be.
        TopologyError: the machine description holds no CPUs.
        AdmissionError: the request cannot be met.
    """
    topology = derive(args.machine, averages=release.has(FREE_CORE_BY_AVERAGE))
    options = cpu_options.parse(args.options, release, gates=None)
    cpu_options.validate(options, topology, "none")
    policy = StaticPolicy(topology, options, release)
    if args.count < 1:
        return CPUSet()
    available = args.available.mask
    try:
        policy.check_alignment(args.count, available.bit_count())
        return CPUSet.from_mask(policy.take(available, args.count))
    except SMTAlignmentError as error:
        raise AdmissionError("SMTAlignmentError", str(error)) from None
    except (NotEnoughCPUsError, AccountingError) as error:
        raise AdmissionError("UnexpectedAdmissionError", str(error)) from None
