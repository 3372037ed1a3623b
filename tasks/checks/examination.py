"""Selections of the registry, and what each finds."""

from django.core.checks import CheckMessage

# each module registers its checks
from harbor_refresh.tasks.checks import postgres, redis_servers, settings, statuses, workers  # noqa: F401
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.registry import REGISTERED, Check, Shown, examine, told
from harbor_refresh.tasks.overview.state import ServiceState


def selection(shown: Shown) -> list[Check]:
    """The checks that this command or page shows. Those of attach are among them once they are imported."""
    return sorted((one for one in REGISTERED.values() if shown in one.shown), key=lambda one: one.place)


def problems(shown: Shown, facts: Facts | None = None) -> list[CheckMessage]:
    return [problem for result in examine(selection(shown), facts or Facts()) for problem in result.problems]


def what_is_wrong(facts: Facts, *checks: str) -> str:
    """Return what these checks find, without what it means; an empty text if nothing is wrong."""
    results = examine([REGISTERED[name] for name in checks], facts)
    return " ".join(told(problem)["what"] for result in results for problem in result.problems)


def findings(state: ServiceState) -> list[CheckMessage]:
    """Return what is wrong in this state, errors first. No server is asked again."""
    found = problems(Shown.DASHBOARD, Facts(glance=state))
    return sorted(found, key=lambda one: not one.is_serious())
