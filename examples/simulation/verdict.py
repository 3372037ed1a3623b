"""Whether K1 to K4 hold after a simulation, and every status is the one the plan predicts."""

import time
from dataclasses import asdict, dataclass, field
from typing import Any

from examples.simulation.invariants import Violation, violations
from examples.simulation.plan import Mix, Plan
from examples.simulation.prediction import outcomes
from examples.simulation.runners import Created, Tally
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.text import plural

NAMES = ("K1", "K2", "K3", "K4")
POLL_SECONDS = 0.2
SETTLE_SECONDS = 5.0


@dataclass(frozen=True)
class Result:
    """What a simulation did and what was wrong after it. Surprises are statuses the plan does not predict."""

    mix: Mix
    first_id: int
    last_id: int
    tally: Tally
    seconds_reporting: float
    seconds_draining: float
    failure: str
    violations: list[Violation] = field(default_factory=list)
    surprises: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not (self.failure or self.violations or self.surprises)

    @property
    def complaint(self) -> str:
        """Say in one line what is wrong; empty if nothing is."""
        if self.failure or self.holds:
            return self.failure
        names = sorted({one.name for one in self.violations})
        what = [f"{' and '.join(names)} do not hold"] if names else []
        if self.surprises:
            what.append(f"{plural(len(self.surprises), 'execution')} ended unlike the plan predicts")
        return "; ".join(what) + f". Repeat it with --seed {self.mix.seed}"

    def broken(self, name: str) -> list[Violation]:
        return [one for one in self.violations if one.name == name]

    def as_json(self) -> dict[str, Any]:
        return {
            "holds": self.holds,
            "mix": asdict(self.mix),
            "first_id": self.first_id,
            "last_id": self.last_id,
            "tally": asdict(self.tally),
            "seconds_reporting": round(self.seconds_reporting, 3),
            "seconds_draining": round(self.seconds_draining, 3),
            "failure": self.failure,
            "invariants": {name: not self.broken(name) for name in NAMES},
            "violations": [asdict(one) for one in self.violations],
            "surprises": self.surprises,
        }


def judge(plan: Plan, created: Created, tally: Tally, *, failure: str, times: tuple[float, float]) -> Result:
    """Look for violations on the servers, and compare each execution with what the plan predicts."""
    return Result(
        mix=plan.mix,
        first_id=min(created.executions),
        last_id=max(created.executions),
        tally=tally,
        seconds_reporting=times[0],
        seconds_draining=times[1],
        failure=failure,
        violations=lasting_violations(),
        surprises=surprises(plan, created),
    )


def lasting_violations() -> list[Violation]:
    """Return the violations that are still there after SETTLE_SECONDS.

    Other processes may report meanwhile, and an execution is out of date for a moment after each report. A real
    violation stays.
    """
    found = violations()
    deadline = time.monotonic() + SETTLE_SECONDS
    while found and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        same = {(one.name, one.execution_id) for one in found}
        found = [one for one in violations() if (one.name, one.execution_id) in same]
    return found


def surprises(plan: Plan, created: Created) -> list[str]:
    """Describe the executions whose status or vendor is not the predicted one, whatever has changed them."""
    stored = dict(Execution.objects.in_bulk(created.executions))
    found = []
    for execution_id, vendor, predicted in zip(created.executions, plan.vendors, outcomes(plan), strict=True):
        execution = stored.get(execution_id)
        got = (execution.status, execution.vendor_type) if execution else ("gone", "")
        if got != (predicted, vendor):
            found.append(f"execution {execution_id} is {got[0]}, and the plan predicts {predicted}")
    return found
