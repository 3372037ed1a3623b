"""A worker that delivers dies at a named point. Nothing stays undelivered, ids repeat, and the order is kept."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from pytest_django import Settings

from harbor_refresh.executions.models import StatusChange
from harbor_refresh.executions.news.deliveries import subscriptions
from tests.faults.cluster import Cluster
from tests.integration.executions.deliveries.changed_executions import ended, rerun, states
from tests.integration.executions.deliveries.receiver import Receiver, receiver
from tests.variants import variants
from tests.waiting import wait_for

#: A lease of three timeouts, and the interval at which a lost one is noticed.
QUICK = {
    "REFRESH_DELIVER_NETWORKS": "127.0.0.1/32",
    "HARBOR_REFRESH_TEST_DELIVER_TIMEOUT_SECONDS": "1",
}
#: For tests that count what arrives: a receiver that stands still for seconds gets nothing twice.
PATIENT = {**QUICK, "HARBOR_REFRESH_TEST_DELIVER_TIMEOUT_SECONDS": "60"}
COUNT = 20


@pytest.fixture
def one(settings: Settings, cluster: Cluster) -> Iterator[Receiver]:
    settings.REFRESH_DELIVER_NETWORKS = ("127.0.0.1/32",)
    with receiver() as listening:
        yield listening
        cluster.end()


def assert_in_order(receivers_ids: list[str]) -> None:
    """The revisions of each execution never go back, although an id may come again."""
    revisions: dict[str, list[int]] = {}
    for _, execution, revision, _ in (one.split("_") for one in receivers_ids):
        revisions.setdefault(execution, []).append(int(revision))
    for seen in revisions.values():
        assert all(before <= after <= before + 1 for before, after in pairwise(seen)), seen


@pytest.mark.slow
@pytest.mark.parametrize("point", variants("answered", "listed", "leased", "recorded"))
def test_sigkill_of_the_deliverer_leaves_nothing_undelivered(
    point: str, cluster: Cluster, one: Receiver, holds: Callable[..., None], tmp_path: Path
) -> None:
    subscription = subscriptions.create("receiver", one.url, statuses=())
    act = {"point": point, "act": "kill_group", "once": str(tmp_path / "acted")}
    victim = cluster.worker("victim", sabotage=act, **QUICK)
    executions = ended(COUNT)
    rerun(executions, 2)
    wait_for(victim.died, f"the victim to die at {point}", log=victim.log)
    sent_before = one.ids()
    cluster.worker("heir", **QUICK)
    cluster.beat({"Deliver": 1}, **QUICK)
    wait_for(lambda: states() == {"delivered": 3 * COUNT}, "all to be delivered")
    assert set(one.ids()) == {
        f"status_{execution.pk}_{revision}_{subscription.pk}" for execution in executions for revision in (1, 2, 3)
    }
    assert_in_order(one.ids())
    assert not StatusChange.objects.filter(told=False).exists()
    if point == "answered":
        again = set(sent_before) & set(one.ids()[len(sent_before) :])
        assert again, "what was answered and not recorded comes again under its id"
    if point in ("listed", "leased"):
        assert sent_before == []
    holds()


def test_a_change_arrives_by_its_wake_up_and_not_by_the_schedule(cluster: Cluster, one: Receiver) -> None:
    """No beat runs: the refresh in the worker wakes a run."""
    subscriptions.create("receiver", one.url)
    worker = cluster.worker(**PATIENT)
    ended(1)
    wait_for(lambda: len(one.received) == 1, "the first change", log=worker.log)
    ended(1)
    wait_for(lambda: len(one.received) == 2, "the second change", log=worker.log)
