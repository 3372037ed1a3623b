"""Beat's scheduler: that of django-celery-beat, but it waits if the database is away when beat starts.

The original ends if it cannot read its rows at the start, although workers wait. Later it has the rows in
memory.
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
        logged = False
        while True:
            try:
                with absence_translated():
                    super().setup_schedule()  # type: ignore[no-untyped-call]
            except DatabaseAway as exc:
                self._initial_read = True  # nothing has been read
                if not logged:
                    log.warning("Beat waits for its schedule: %s", exc)
                logged = True
                time.sleep(PAUSE_SECONDS)
            else:
                return
