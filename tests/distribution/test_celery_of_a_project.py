"""`connect(app)` with both ends of the range: Celery 5.6 reads `CELERY_BEAT_SCHEDULE` before what is assigned to
`app.conf`, and Celery 5.7 after it."""

from pathlib import Path

import pytest

from tests.distribution.fixtures import Make
from tests.hosts.test_a_celery_app_is_joined import THEIR_ROUTES, joins

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("versions", ["oldest", "pinned"])
def test_the_settings_of_a_project_and_ours_are_both_read(
    environment: Make, tmp_path: Path, versions: str
) -> None:
    python = environment("all", versions).python
    for routes in THEIR_ROUTES:
        joins(routes, tmp_path / routes.replace(" ", "_"), python=python)
