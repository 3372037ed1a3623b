"""Stop the jobs of executions: what waits is not begun any more, what runs is asked to stop."""

from typing import Any

from executions.management.output import Answer, plural
from tasks.jobs.lifecycle.job_stops import stop_jobs
from tasks.jobs.overview.selection import for_each, select
from tasks.management.verbs.jobs import chosen as these
from tasks.management.verbs.numbers import some
from tasks.queue.connection import absence_remembered

HELP = "stop the jobs of executions"

arguments = these.arguments


def answer(options: dict[str, Any]) -> Answer:
    chosen = select(options["ids"])
    with absence_remembered():
        stopped = dict(for_each(chosen.going, stop_jobs))
    asked = sum(stopped.values())
    chosen = these.without_the_deleted(chosen, chosen.going, stopped)
    data = {"stopped": list(stopped), "asked": asked, "ended": list(chosen.ended), **these.as_data(chosen)}
    running = f"{plural(asked, 'job runs and was', 'jobs run and were')} asked to stop"
    shown = [f"Stopped {plural(len(stopped), 'execution')}; {running}."]
    if chosen.ended:
        shown.append(f"Had ended before: {some(chosen.ended)}.")
    return Answer(data, shown, these.failure(chosen))
