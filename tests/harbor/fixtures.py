"""What tests of an attached service ask for."""

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker, Settings

from harbor_refresh.executions.attached.attachment import HARBOR
from harbor_refresh.tasks.pipeline.legacy_marks import legacy_marks
from harbor_refresh.tasks.queue import brief_queue, execution_queue
from tests.conftest import fresh_database
from tests.harbor.databases import connections_attached, make_harbors_database, manage_attached

TEMPLATE = "harbor_template"


@pytest.fixture(scope="session")
def attached_template(template: str) -> str:
    """A database of Harbor's with our tables beside its own, from which each test's own is copied.

    The template of the other tests is made before it, because the modules of the migrations are as attached as the
    process was that imported them, and a test may import them while it is attached (the doctor does).
    """
    make_harbors_database(TEMPLATE)
    done = manage_attached(TEMPLATE, "migrate", "--verbosity=0")
    assert done.returncode == 0, done.stderr
    return TEMPLATE


@pytest.fixture
def attached(attached_template: str, django_db_blocker: DjangoDbBlocker, settings: Settings) -> Iterator[str]:
    """A fresh database of Harbor's, to which this process is attached during the test.

    The models have their foreign keys as in a process that is not, which only a migration would notice.
    """
    settings.REFRESH_ATTACH = HARBOR
    forget_queues()
    with connections_attached(), fresh_database(attached_template, django_db_blocker) as name:
        yield name
    forget_queues()


def forget_queues() -> None:
    """The queues that this process has made have the key of the mode in which they were made."""
    execution_queue.cache_clear()
    brief_queue.cache_clear()
    legacy_marks.cache_clear()
