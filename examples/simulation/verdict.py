"""Whether a simulation came out as it must: by K1 to K4, and by the oracle."""

from dataclasses import asdict, dataclass, field
from typing import Any

from examples.simulation.crowd import Made, Tally
from examples.simulation.drain import lasting_violations
from examples.simulation.oracle import outcomes
from examples.simulation.plan import Mix, Plan
from executions.invariants import Violation
from executions.management.output import plural
from executions.models import Execution

NAMES = ("K1", "K2", "K3", "K4")


@dataclass(frozen=True)
class Result:
    """What a simulation did, and what was wrong after it."""

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
        """One line on what is wrong; empty if nothing is."""
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


def judge(plan: Plan, made: Made, tally: Tally, *, failure: str, times: tuple[float, float]) -> Result:
    """Ask the servers, and compare each execution of the plan with what the plan predicts."""
    return Result(
        mix=plan.mix,
        first_id=min(made.executions),
        last_id=max(made.executions),
        tally=tally,
        seconds_reporting=times[0],
        seconds_draining=times[1],
        failure=failure,
        violations=lasting_violations(),
        surprises=surprises(plan, made),
    )


def surprises(plan: Plan, made: Made) -> list[str]:
    """Executions that ended unlike the plan predicts, whoever it was that changed them."""
    stored = dict(Execution.objects.in_bulk(made.executions))
    found = []
    for execution_id, vendor, predicted in zip(made.executions, plan.vendors, outcomes(plan), strict=True):
        execution = stored.get(execution_id)
        got = (execution.status, execution.vendor_type) if execution else ("gone", "")
        if got != (predicted, vendor):
            found.append(f"execution {execution_id} is {got[0]}, and the plan predicts {predicted}")
    return found
