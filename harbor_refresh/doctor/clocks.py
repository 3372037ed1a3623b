"""The check of the clocks: of this machine, of PostgreSQL and of Redis."""

from collections.abc import Callable, Iterator

from harbor_refresh.doctor.check import Check, Problem, warning
from harbor_refresh.doctor.facts import Facts, Need, run
from harbor_refresh.executions.errors import QueueUnavailable

#: A difference that a person notices on a screen.
NOTICEABLE = 5.0
#: Near the 5 minutes at which signed reports are refused. At an hour, ticks expire before they run.
TOO_LARGE = 240.0


def clocks(facts: Facts) -> Iterator[Problem]:
    readings: list[tuple[str, Callable[[], float]]] = [
        ("PostgreSQL", _of_postgres),
        ("Redis", lambda: _of_redis(facts)),
    ]
    for name, read in readings:
        try:
            away = _difference(facts, read)
        except QueueUnavailable:
            continue
        if abs(away) < NOTICEABLE:
            continue
        order = "ahead of" if away > 0 else "behind"
        what = f"The clock of this machine is {abs(away):,.0f} s {order} that of {name}."
        if abs(away) < TOO_LARGE:
            yield warning(
                f"{what} Ages on screens are wrong by as much.", "timedatectl set-ntp true, on both machines"
            )
        else:
            yield Problem(
                f"{what} Signed reports are refused after 5 minutes of difference; after an hour ticks expire "
                "before they run.",
                "timedatectl set-ntp true, on both machines",
            )


def _difference(facts: Facts, read: Callable[[], float]) -> float:
    """Return how many seconds this machine's clock is ahead. The server is taken to have read its clock half-way
    between question and answer."""
    before = facts.clock()
    there = read()
    return (before + facts.clock()) / 2 - there


def _of_postgres() -> float:
    return float(run("clock")[0][0])


def _of_redis(facts: Facts) -> float:
    with facts.redis.asked() as client:
        seconds, microseconds = client.time()
    return float(seconds) + float(microseconds) / 1_000_000


CHECKS = (Check("clocks", "the clocks agree", clocks, (Need.DATABASE,)),)
