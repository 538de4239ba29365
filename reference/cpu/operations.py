"""CPU assignment alone: no reservation, no affinity, every option open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.protocol.sets import CPUSet
from numaproof.reference.cpu import options as cpu_options
from numaproof.reference.cpu.assignment import NotEnoughCPUsError
from numaproof.reference.cpu.distribution import AccountingError
from numaproof.reference.cpu.policy import DOCUMENTED, SMTAlignmentError
from numaproof.reference.cpu.topology import derive
from numaproof.reference.errors import AdmissionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.protocol import messages
    from numaproof.reference.cpu.policy import CPURules
    from numaproof.reference.kubelet.gates import Maturity


def assign(
    args: messages.AssignArgs, known: Mapping[str, Maturity], rules: CPURules = DOCUMENTED
) -> CPUSet:
    """The CPUs that a request gets out of those available; `known` are the policy's options.

    Raises:
        OptionError: the options cannot be.
        TopologyError: the machine description holds no CPUs.
        AdmissionError: the request cannot be met.
    """
    topology = derive(args.machine)
    options = cpu_options.parse(args.options, known, gates=None)
    cpu_options.validate(options, topology, "none")
    policy = rules.bare(topology, options)
    if args.count < 1:
        return CPUSet()
    available = args.available.mask
    try:
        policy.check_alignment(args.count, available.bit_count())
        return CPUSet.from_mask(policy.assignment.take(available, args.count))
    except SMTAlignmentError as error:
        raise AdmissionError("SMTAlignmentError", str(error)) from None
    except (NotEnoughCPUsError, AccountingError) as error:
        raise AdmissionError("UnexpectedAdmissionError", str(error)) from None
