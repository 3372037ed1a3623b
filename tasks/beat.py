"""Beat's scheduler: django-celery-beat's, which waits for a database that is away when beat starts.

Without that, beat ends when it cannot read its rows, though workers wait. While it runs it has them in memory.
"""

import logging
import time

from django_celery_beat.schedulers import DatabaseScheduler

from executions.database import absence_translated
from executions.errors import DatabaseAway

log = logging.getLogger("harbor_refresh")

PAUSE_SECONDS = 1.0


class PatientScheduler(DatabaseScheduler):
    def setup_schedule(self) -> None:
        told = False
        while True:
            try:
                with absence_translated():
                    super().setup_schedule()  # type: ignore[no-untyped-call]
            except DatabaseAway as exc:
                self._initial_read = True  # it has read nothing
                if not told:
                    log.warning("Beat waits for its schedule: %s", exc)
                told = True
                time.sleep(PAUSE_SECONDS)
            else:
                return
