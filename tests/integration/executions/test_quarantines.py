"""quarantine, release: what they leave beside a delete, and what a release returns and tells."""

import psycopg
import pytest

from harbor_refresh.executions.lifecycle.quarantines import quarantine, release
from harbor_refresh.executions.models import Quarantine
from harbor_refresh.executions.news.after_commit import Member
from tests import servers
from tests.integration.concurrency import in_background, wait_until
from tests.integration.database_state import rows, waiting_for_locks
from tests.integration.sample_executions import drifted, made

pytestmark = pytest.mark.usefixtures("database")


def test_a_quarantine_waits_for_a_delete_that_has_begun_and_leaves_nothing(database: str) -> None:
    kept, deleted = made(1)[0], made(1)[0]
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        for table in ("task", "execution_status_change"):
            other.execute(f"DELETE FROM {table} WHERE execution_id = %s".encode(), [deleted.pk])
        other.execute("DELETE FROM execution WHERE id = %s", [deleted.pk])
        with in_background(lambda: quarantine([kept.pk, deleted.pk], 5)) as quarantined:
            wait_until(lambda: waiting_for_locks() == 1, "the quarantine waits for the delete")
            other.commit()
            quarantined()
    assert set(rows(Quarantine)) == {kept.pk}


def test_a_release_returns_the_executions_that_were_in_quarantine_and_tells_of_them(changed: list[Member]) -> None:
    execution, other = drifted(), drifted()
    Quarantine.objects.create(execution=execution, reason="x", attempts=1)
    assert release([execution.pk, other.pk, 10**9]) == [execution.pk]
    assert rows(Quarantine) == {}
    assert changed == [(execution.pk, "TEST")]
    assert release([]) == []
