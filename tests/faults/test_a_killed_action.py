"""A worker dies in the middle of an action on many executions. Another goes on, and each execution counts once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harbor_refresh.executions.models import Execution, StatusChange, Task
from tests.faults.cluster import Cluster
from tests.faults.conftest import many
from tests.integration.operations.actions.sample_bulk import statuses
from tests.integration.sample_actions import asked, result
from tests.waiting import wait_for


@pytest.mark.slow
def test_sigkill_in_the_middle_of_an_action_costs_a_page_that_is_done_again(
    cluster: Cluster, holds: Callable[..., None], tmp_path: Path
) -> None:
    ids = many(3_000)
    middle = {"point": "deciding", "act": "kill_group", "id": ids[1_600], "once": str(tmp_path / "acted")}
    victim = cluster.worker("victim", sabotage=middle)
    action = asked(vendor_type="REPLICATION")
    later = many(1)
    wait_for(victim.died, "the victim to die in the fourth page", log=victim.log)
    assert statuses() == {"Stopped": 1_500, "Running": 1_501}
    cluster.worker("heir")
    cluster.beat()
    wait_for(lambda: result(action)["status"] != "Running", "the heir to end the action")
    assert result(action) == {"status": "Success", "changed": 3_000}
    assert statuses() == {"Stopped": 3_000, "Running": 1}
    assert StatusChange.objects.filter(execution__in=ids).count() == 3_000
    assert Task.objects.filter(status="Stopped").count() == 3_000
    assert Execution.objects.get(pk=later[0]).status == "Running"
    holds()
