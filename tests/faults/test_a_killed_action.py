"""A worker dies in the middle of an action on many executions. Another goes on, and each execution counts once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harbor_refresh.executions.actions.bulk import find
from harbor_refresh.executions.models import Execution, StatusChange, Task
from harbor_refresh.executions.models.operations import Origin, Verb
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.tasks.operations.bulk import ask_and_wake
from tests.faults.cluster import Cluster
from tests.faults.conftest import many, statuses
from tests.integration.sample_actions import lease_runs_out, result
from tests.waiting import wait_for


@pytest.mark.slow
def test_sigkill_in_the_middle_of_an_action_costs_a_page_that_is_done_again(
    cluster: Cluster, holds: Callable[..., None], tmp_path: Path
) -> None:
    ids = many(3_000)
    middle = {"point": "deciding", "act": "kill_group", "id": ids[1_600], "once": str(tmp_path / "acted")}
    victim = cluster.worker("victim", sabotage=middle)
    action = ask_and_wake(Verb.STOP, Filter(vendor_type="REPLICATION"), by="a test", origin=Origin.API)
    later = many(1)
    wait_for(victim.died, "the victim to die in the fourth page", log=victim.log)
    assert result(action) == {"state": "running", "changed": 1_500}
    assert statuses() == {"Stopped": 1_500, "Running": 1_501}
    cluster.worker("heir")
    cluster.beat()
    lease_runs_out(action)
    wait_for(lambda: find(action.pk).has_ended, "the heir to end the action")
    assert result(action) == {"state": "done", "changed": 3_000}
    assert statuses() == {"Stopped": 3_000, "Running": 1}
    assert StatusChange.objects.count() == 3_000
    assert Task.objects.filter(status="Stopped").count() == 3_000
    assert Execution.objects.get(pk=later[0]).status == "Running"
    cluster.says(f"Action {action.pk}, stop executions, has ended as done: 3000 changed, 0 skipped")
    holds()
