"""A project sends its reads to a replica. Ours are decisions, so they read what was written."""

import pytest
from django.db import router

from harbor_refresh.executions.lifecycle.creation import NewExecution, create
from harbor_refresh.executions.lifecycle.stops import finish
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs import TrackedExecution

pytestmark = pytest.mark.usefixtures("replica", "redis")


def test_tracked_executions_are_read_from_the_primary() -> None:
    assert router.db_for_read(TrackedExecution) == router.db_for_write(TrackedExecution) == "default"
    alone = create(NewExecution("TEST"))
    finish(alone.pk, Status.SUCCESS)
    assert TrackedExecution.objects.get(pk=alone.pk).status == "Success"
