"""Stop the jobs of executions: waiting jobs do not begin any more, running jobs are asked to stop."""

from functools import partial
from typing import Any

from harbor_refresh.executions.audit import Kind, Word, at_terminal, note
from harbor_refresh.executions.management.output import Answer
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.id_list import id_list
from harbor_refresh.tasks.jobs.lifecycle.job_stops import stop_jobs
from harbor_refresh.tasks.jobs.overview.selection import for_each, select
from harbor_refresh.tasks.management.verbs.jobs import named_executions
from harbor_refresh.tasks.queue.connection import absence_remembered


def _stop(execution_id: int) -> int:
    return stop_jobs(execution_id, partial(note, at_terminal(), Word.STOP, Kind.EXECUTION, execution_id))


def answer(options: dict[str, Any]) -> Answer:
    chosen = select(options["ids"])
    with absence_remembered():
        stopped = dict(for_each(chosen.going, _stop))
    asked = sum(stopped.values())
    chosen = named_executions.without_deleted(chosen, chosen.going, stopped)
    left_out = named_executions.as_data(chosen)
    data = {"stopped": list(stopped), "asked": asked, "ended": list(chosen.ended), **left_out}
    running = f"{plural(asked, 'job runs and was', 'jobs run and were')} asked to stop"
    shown = [f"Stopped {plural(len(stopped), 'execution')}; {running}."]
    if chosen.ended:
        shown.append(f"Had ended before: {id_list(chosen.ended, at_most=named_executions.SHOWN)}.")
    return Answer(data, shown, named_executions.failure(chosen))
