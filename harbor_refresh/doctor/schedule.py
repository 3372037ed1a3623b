"""Checks of beat: that its rows are there and as the program needs them, and that a beat follows them."""

from collections.abc import Iterator
from datetime import UTC, datetime

from django.conf import settings

from harbor_refresh.doctor.check import Check, Problem, warning
from harbor_refresh.doctor.facts import Facts, Need
from harbor_refresh.doctor.overview import overview
from harbor_refresh.tasks.schedule import ROWS

#: A row that runs so much less often than the default does not do its work any more.
RARE = 20


def rows_right(facts: Facts) -> Iterator[Problem]:
    for row in ROWS:
        if found := facts.rows.get(row.name):
            if found.task != row.task:
                yield Problem(
                    f"The row {row.name} sends {found.task} and not {row.task}.",
                    f"Set its task in the admin to {row.task}: Periodic tasks, {row.name}",
                )
            if found.one_off:
                yield Problem(
                    f"The row {row.name} runs once and not again (one-off).",
                    f"Clear One-off Task in the admin: Periodic tasks, {row.name}",
                )
            if found.start_time and found.start_time > datetime.now(UTC):
                yield warning(
                    f"The row {row.name} begins only at {found.start_time:%Y-%m-%d %H:%M %Z}.",
                    f"Clear its start in the admin: Periodic tasks, {row.name}",
                )
            if found.seconds and found.seconds > RARE * max(row.seconds, 1):
                yield warning(
                    f"The row {row.name} runs every {found.seconds:,.0f} s, and every {row.seconds:,.0f} s is "
                    "usual.",
                    f"Set its interval in the admin: Periodic tasks, {row.name}",
                )


def scheduler(facts: Facts) -> Iterator[Problem]:
    named = getattr(settings, "CELERY_BEAT_SCHEDULER", "")
    if named != "harbor_refresh.tasks.beat:PatientScheduler":
        yield warning(
            f"Beat's scheduler is {named or 'that of Celery'}: it ends if the database is away when it starts, "
            "or does not read the rows of the admin.",
            'In the settings: CELERY_BEAT_SCHEDULER = "harbor_refresh.tasks.beat:PatientScheduler"',
        )


CHECKS = (
    Check(
        "beat.rows",
        "the rows of the schedule are there and enabled",
        overview("schedule_row_missing", "schedule_row_disabled"),
        (Need.DATABASE,),
    ),
    Check("beat.settings", "the rows are as they should be", rows_right, (Need.DATABASE,)),
    Check("beat.alive", "a beat sends ticks", overview("beat_silent"), (Need.DATABASE,)),
    Check("beat.scheduler", "beat waits for a database that is away", scheduler),
)
