"""What `make up` runs, as the command lines say it."""

import importlib.util
from itertools import pairwise

from examples import mirror, traffic
from harbor_refresh.local.services import Service, services

SERVICES = {service.name: service for service in services(8000, 5555)}


def options(service: Service) -> dict[str, str]:
    """Each word that begins with a dash, and the word behind it."""
    return {one: next_one for one, next_one in pairwise(service.arguments) if one.startswith("-")}


def test_everything_runs_in_this_order() -> None:
    assert list(SERVICES) == ["web", "worker1", "worker2", "jobs", "beat", "flower", "demo", "mirrors"]


def test_the_worker_of_the_jobs_has_the_example_and_takes_the_jobs_of_its_traffic() -> None:
    assert options(SERVICES["jobs"])["--include"] == mirror.__name__
    assert options(SERVICES["jobs"])["-Q"] == traffic.QUEUE


def test_the_workers_of_the_refresh_take_no_jobs() -> None:
    for name in ("worker1", "worker2"):
        assert not {"-Q", "--include"} & set(SERVICES[name].arguments)


def test_the_traffic_starts_the_mirrors() -> None:
    assert SERVICES["mirrors"].arguments == ("-m", traffic.__name__)
    assert all(importlib.util.find_spec(options(one)["-m"]) for one in SERVICES.values() if "-m" in one.arguments)


def test_every_worker_ends_at_once_with_make_up() -> None:
    workers = {name for name, one in SERVICES.items() if one.death_signal == one.death_signal.SIGKILL}
    assert workers == {"worker1", "worker2", "jobs"}
