"""Many executions, created in one transaction."""

from collections.abc import Iterable

from django.db import transaction

from harbor_refresh.executions.lifecycle.creation import NewExecution, create
from harbor_refresh.executions.models import Execution


def create_many(news: Iterable[NewExecution]) -> list[Execution]:
    with transaction.atomic():
        return [create(one) for one in news]
