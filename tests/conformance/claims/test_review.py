"""What a run says of the claims of an implementation."""

from __future__ import annotations

import msgspec

from numaproof.conformance.claims.review import ClaimsTally
from numaproof.protocol import messages
from numaproof.protocol.events import CaseFinished

HELLO = messages.Hello(
    protocol=1,
    name="toy",
    version="1",
    language="C",
    kubernetes=("1.36",),
    level="invariants",
    operations=("start", "admit", "state"),
    policies=messages.Policies(cpu=("static",)),
    options=messages.Options(),
    features=("sidecars",),
)
SIDECARS = ("operation admit", "feature sidecars")


def finished(outcome: str = "pass", **claims: object) -> CaseFinished:
    plain = {"event": "case finished", "at": 0.0, "case": "a", "title": "", "machine": "m"}
    plain |= {"outcome": outcome, "seconds": 0.0, "requirements": ()}
    return msgspec.convert({**plain, **claims}, CaseFinished)


def tally(*runs: CaseFinished, hello: messages.Hello = HELLO) -> ClaimsTally:
    made = ClaimsTally(hello)
    for one in runs:
        made.count_case(one)
    return made


def test_runs_that_were_not_asked_are_counted_by_the_missing_claim() -> None:
    review = tally(
        finished("unsupported", unclaimed="operation devices"),
        finished("unsupported", unclaimed="feature restart"),
        finished("unsupported", unclaimed="feature restart"),
        finished(),
    ).review()
    assert review.unclaimed == {"feature restart": 2, "operation devices": 1}
    assert not review.assumed


def test_a_feature_whose_operations_are_there_could_be_claimed() -> None:
    review = tally(
        finished("unsupported", unclaimed="feature restart"),
        finished("unsupported", unclaimed="feature container-removal"),
        finished("unsupported", unclaimed="feature huge-pages"),
    ).review()
    assert review.possible == ("feature restart",)


def test_a_claim_that_is_always_answered_unsupported_is_untrue() -> None:
    one = finished("unsupported", needs=SIDECARS, declined=("feature sidecars",))
    review = tally(one, one, finished(needs=("operation admit",))).review()
    assert review.untrue == (
        "claims feature sidecars, but answered `unsupported` in all 2 case runs that need it",
    )
    assert review.declined == 2


def test_a_claim_that_is_answered_once_is_not_untrue() -> None:
    one = finished("unsupported", needs=SIDECARS, declined=("feature sidecars",))
    assert tally(one, finished(needs=SIDECARS)).review().untrue == ()


def test_a_claim_whose_runs_all_fail_is_untrue_if_others_pass() -> None:
    bad, good = finished("fail", needs=SIDECARS), finished(needs=("operation admit",))
    assert tally(bad, bad, good).review().untrue == (
        "claims feature sidecars, but failed all 2 case runs that need it",
    )
    assert tally(bad, good).review().untrue == ()
    assert tally(bad, bad).review().untrue == ()


def test_without_features_it_says_that_they_are_assumed() -> None:
    assert tally(hello=msgspec.structs.replace(HELLO, features=None)).review().assumed


def test_a_level_at_which_no_answer_differed_could_be_claimed() -> None:
    good, exact = finished(agreed="placement"), finished(agreed="kubelet")
    assert tally(good, exact).review().possible == ("level placement (no answer differed)",)
    assert tally(exact, finished(agreed="invariants")).review().possible == ()
    assert tally(finished()).review().possible == ()


def test_no_higher_level_could_be_claimed_where_a_run_failed() -> None:
    bad = finished("fail", agreed="placement")
    assert tally(finished(agreed="placement"), bad).review().possible == ()
