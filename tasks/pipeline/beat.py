"""Beat's scheduler: django-celery-beat's, which also restores the rows that the program needs, and

- waits if the database is down when beat starts, and keeps the rows that it has if the database goes down behind
  the look that has found a change: the original ends in both cases;
- does not wait for the broker. If the broker is down when the first message is due, the original tries to connect
  for 50 minutes, and then ends. Here each message connects by itself. One that cannot be sent is logged and left
  out until its row is due again;
- goes on if the clock goes back by more than a minute. The original waits until the clock reaches its noted times;
- only ends the process on SIGTERM. Celery's handler writes the rows, and if it interrupts a statement of this
  process, neither ever ends. It has nothing to write: beat writes each run as it sends it. If the
  database is down then, the row may be sent again.
"""

import logging
import signal
import time
from datetime import datetime, timedelta
from typing import Any, NoReturn

from django.db import Error
from django.utils import timezone
from django_celery_beat.schedulers import DatabaseScheduler, ModelEntry

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseDown
from harbor_refresh.executions.text import said_by
from harbor_refresh.tasks.pipeline.schedule import restore_rows

log = logging.getLogger("harbor_refresh")

PAUSE_SECONDS = 1.0
#: A time that is so far ahead comes from a wrong clock.
WRONG_CLOCK = timedelta(minutes=1)
HANDLERS = "celery.apps.beat"


def _end(*_: Any) -> NoReturn:
    raise SystemExit


def replace_handlers() -> None:
    """Replace the handlers that Celery's beat has installed; in a program that is no beat, do nothing."""
    for number in (signal.SIGTERM, signal.SIGINT):
        if getattr(signal.getsignal(number), "__module__", None) == HANDLERS:
            signal.signal(number, _end)


class Entry(ModelEntry):
    def __init__(self, model: Any, app: Any = None) -> None:
        """Have a row that cannot be read left out, as for a ValueError. The original ends for other errors, such
        as that of headers that are a list."""
        try:
            super().__init__(model, app=app)  # type: ignore[no-untyped-call]
        except Error:
            raise
        except Exception as exc:
            log.error("Beat leaves out the periodic task %s: %s", model.name, said_by(exc))
            raise ValueError from exc

    def save(self) -> None:
        """Write when the row was last due, and how often. The original reads the row and writes all of it, so a
        person who disabled it in between would find it enabled again."""
        of_beat = {"last_run_at": self.model.last_run_at, "total_run_count": self.model.total_run_count}
        if not type(self.model).objects.filter(pk=self.model.pk).update(**of_beat):
            raise self.model.DoesNotExist


class PatientScheduler(DatabaseScheduler):
    Entry = Entry
    _looked_at = datetime.min

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        replace_handlers()
        kwargs.setdefault("sync_every_tasks", 1)
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]

    def setup_schedule(self) -> None:
        logged = False
        while True:
            try:
                with absence_translated():
                    restore_rows()
                    super().setup_schedule()  # type: ignore[no-untyped-call]
            except DatabaseDown as exc:
                self._initial_read = True  # nothing has been read
                if not logged:
                    log.warning("Beat waits for its schedule: %s", exc)
                logged = True
                time.sleep(PAUSE_SECONDS)
            else:
                return

    def schedule_changed(self) -> bool:
        """Have the rows read as well if the clock has gone back: then all planned times are too late."""
        before, self._looked_at = self._looked_at, datetime.now()
        return before > self._looked_at or bool(super().schedule_changed())  # type: ignore[no-untyped-call]

    def all_as_schedule(self) -> Any:
        """Read the rows. A run far in the future comes from a clock that was ahead, and counts as a run of now. If
        the database is down, the known rows stay, and the next look reads them."""
        try:
            with absence_translated():
                now, rows = timezone.now(), self.Model.objects
                rows.filter(last_run_at__gt=now + WRONG_CLOCK).update(last_run_at=now)
                rows.filter(last_run_at=None, date_changed__gt=now + WRONG_CLOCK).update(date_changed=now)
                return super().all_as_schedule()  # type: ignore[no-untyped-call]
        except DatabaseDown:
            if self._schedule is None:
                raise
            self._looked_at = datetime.max
            for entry in self._schedule.values():  # it has the times of when it was read, and its row those since
                entry.last_run_at, entry.total_run_count = entry.model.last_run_at, entry.model.total_run_count
            return self._schedule

    def _ensure_connected(self) -> Any:
        return self.connection
