"""Render a job: its attempt, its needs, its arguments, its result and what it said last; and the graph of the jobs
of an execution."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import partial
from itertools import chain
from typing import Any

from django.db.models import OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Left
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from harbor_refresh.executions.admin.formatters import (
    COLOURS,
    NOTHING,
    column,
    execution_link,
    status_label,
    task_link,
    task_url,
)
from harbor_refresh.executions.models import Link, Task
from harbor_refresh.executions.status import is_final
from harbor_refresh.executions.text import duration, plural
from harbor_refresh.tasks.jobs.queries import check_in_of, why
from harbor_refresh.tasks.jobs.running.handle import JobCheckIn
from harbor_refresh.tasks.models.job import Job, JobEnd, JobState, Need, Node

#: JSON of at most so many characters is shown in one line.
LINE = 36
#: Of more needs, the first are shown.
MOST_NEEDS = 20
#: Longer JSON is folded.
SCREEN = 4_000
#: Larger graphs are not drawn. More jobs than FOLDED_FROM are folded.
MOST_LINES, MOST_BOXES, FOLDED_FROM = 20_000, 100, 30
WIDTH, HEIGHT, GAP, SPACE = 190, 46, 60, 14
MOST_TEXT = 26

#: The layer of a box, and the name of its jobs or the id of its only one.
Box = tuple[int, str | int]


def attempt_of(job: Job) -> SafeString:
    """Show the number of the attempt that waits, runs or has ended, and how many there may be."""
    begun = job.run - job.runs_before
    now = max(1, begun + (job.state in (JobState.WAITING, JobState.SENT)))
    return format_html('<span class="whitespace-nowrap">{} of {}</span>', now, job.max_attempts)


def waits_for(job: Job) -> str:
    if not job.waits_for or is_final(job.task.status):
        return NOTHING
    return plural(job.waits_for, "job")


def with_jobs(tasks: QuerySet[Task], *, shown: bool) -> QuerySet[Task]:
    """Read with each task the child that it stands for, and what `job_name` shows of its job, if jobs are shown to
    the user."""
    jobs = Job.objects.only("name").annotate(first=Left(KeyTextTransform("0", "args"), MOST_TEXT + 1))
    child = Subquery(Link.objects.filter(task_id=OuterRef("pk")).values("child_id"))
    return tasks.annotate(child=child).prefetch_related(Prefetch("job", jobs if shown else jobs.none()))


def job_name(task: Any) -> SafeString | str:
    """Show the name of its job and the first argument, with the job id as a title. Without a job, show the child
    that it stands for, or the job id."""
    if task.child:
        return format_html("execution {}", execution_link(task.child))
    if (job := getattr(task, "job", None)) is None:
        return task.job_id or NOTHING
    first = f": {Truncator(job.first).chars(MOST_TEXT)}" if job.first else ""
    return format_html('<span title="{}">{}{}</span>', task.job_id, job.name, first)


def needed_jobs(job: Job) -> SafeString | str:
    """Show the jobs that it needs, with their statuses. `need_count` is of the query that has read the job."""
    if not job.need_count:  # type: ignore[attr-defined]
        return NOTHING
    rows = job.needs.order_by("is_met", "place").values_list("needed_id", "needed__task__status")
    shown = format_html_join(
        " ",
        '<span class="inline-flex gap-2 items-center">{} {}</span>',
        ((task_link(pk), status_label(status)) for pk, status in rows[:MOST_NEEDS]),
    )
    more = job.need_count - MOST_NEEDS  # type: ignore[attr-defined]
    return format_html("{} and {} more", shown, f"{more:,}") if more > 0 else shown


def pretty(value: Any) -> SafeString | str:
    return pretty_result(value) if value else NOTHING


def pretty_result(value: Any) -> SafeString:
    """Show the value as JSON, also one that is empty."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > LINE:
        text = json.dumps(value, indent=2, ensure_ascii=False)
    if len(text) > SCREEN:
        return folded(f"Show {len(text):,} characters", text)
    return format_html('<pre class="text-sm" style="white-space: pre-wrap; word-break: break-all">{}</pre>', text)


def job_result(end: JobEnd) -> SafeString | str:
    return f"It was not kept: {end.why_not}." if end.why_not else pretty_result(end.result)


def folded(summary: str, text: str) -> SafeString:
    return format_html(
        '<details><summary class="cursor-pointer">{}</summary>'
        '<pre class="text-sm mt-2" style="white-space: pre-wrap; overflow-wrap: anywhere">{}</pre></details>',
        summary,
        text,
    )


def worker_label(job: Job) -> str:
    name = Node.objects.filter(pk=job.node or 0).values_list("name", flat=True).first()
    return f"{name or 'a worker that is dead; the job is given to another one in seconds'}, process {job.process}"


def last_heard(job: Job) -> str:
    seconds = (timezone.now() - job.heard_at).total_seconds() if job.heard_at else 0
    said = check_in_of(job)
    message = f": {said.message}" if said and said.message else ""
    return f"{duration(round(max(0, seconds)))} ago{message}"


def check_in_bar(job: Job) -> SafeString | str:
    said = check_in_of(job) or JobCheckIn()
    if said.done is None or said.of is None:
        return NOTHING
    # a bar of 0 of 0 would have no end
    value, most = (said.done, said.of) if said.of else (1, 1)
    return format_html(
        '<div class="harbor-job-bar"><progress value="{}" max="{}" aria-label="Progress of the job">'
        '</progress> <span class="whitespace-nowrap">{}</span></div>',
        value,
        most,
        f"{said.done:,} of {said.of:,}",
    )


class JobFields:
    """The fields of a job on the page of its task, which has read `its_job`, and `its_end` if that is kept."""

    name = column("its_job.name", "Name", str)
    attempt = column("its_job", "Attempt", attempt_of)
    arguments = column("its_job.args", "Arguments", pretty)
    named_arguments = column("its_job.kwargs", "Named arguments", pretty)
    options = column("its_job.options", "Options", pretty)
    published = column("its_job.sent_at", "Message sent")
    needed = column("its_job", "Needs", needed_jobs)
    worker = column("its_job", "Runs on", worker_label)
    runs_so_far = column("its_job.run", "Runs so far", int)
    heard = column("its_job", "Last heard of", last_heard)
    why = column("its_job", "Why it does not run", why)
    done = column("its_job", "Done", check_in_bar)
    result = column("its_end", "Result", job_result)
    traceback = column("its_end.traceback", "Traceback", partial(folded, "Show the traceback"))


def drawn(execution_id: int) -> str:
    """Return the graph as HTML; nothing if no job needs another one. Of many jobs, those of one name in
    one column are one box."""
    rows = Need.objects.filter(job__task__execution_id=execution_id).values_list("job_id", "needed_id")
    pairs = list(rows[: MOST_LINES + 1])
    if not pairs:
        return ""
    context = _picture(pairs) if len(pairs) <= MOST_LINES else {}
    return render_to_string("tasks/admin/job_graph.html", context)


def _picture(pairs: list[tuple[int, int]]) -> dict[str, Any]:
    needs = defaultdict[int, list[int]](list)
    for job, needed in pairs:
        needs[job].append(needed)
    ids = sorted(set(chain.from_iterable(pairs)))  # what is needed has a lower id
    names, statuses = {}, {}
    for pk, name, status in Job.objects.filter(pk__in=ids).values_list("pk", "name", "task__status"):
        names[pk], statuses[pk] = name, status
    layers: dict[int, int] = {}
    members = defaultdict[Box, list[int]](list)
    for pk in ids:
        layers[pk] = max((layers[one] + 1 for one in needs[pk]), default=0)
        members[layers[pk], names[pk] if len(ids) > FOLDED_FROM else pk].append(pk)
    if len(members) > MOST_BOXES:
        return {}
    columns = defaultdict[int, list[Box]](list)
    for box in members:
        columns[box[0]].append(box)
    most = max(map(len, columns.values()))
    at = {
        pk: (layer * (WIDTH + GAP), place * (HEIGHT + SPACE) + (most - len(column)) * (HEIGHT + SPACE) // 2)
        for layer, column in columns.items()
        for place, box in enumerate(column)
        for pk in members[box]
    }
    return {
        "width": len(columns) * (WIDTH + GAP) - GAP,
        "height": most * (HEIGHT + SPACE) - SPACE,
        "boxes": [_box(pks, names, Counter(statuses[pk] for pk in pks), at[pks[0]]) for pks in members.values()],
        "lines": sorted({_line(at[needed], at[job]) for job, needed in pairs}),
        "count": len(ids),
        "box": {"width": WIDTH, "height": HEIGHT},
    }


def _box(pks: list[int], names: Mapping[int, str], counts: Counter[str], at: tuple[int, int]) -> dict[str, Any]:
    first, *others = pks
    worst = next(
        status for status in ("Error", "Stopped", "Running", "Scheduled", "Pending", "Success") if counts[status]
    )
    text = Truncator(names[first].rpartition(".")[2]).chars(MOST_TEXT)
    shown = ", ".join(f"{count:,} {status}" for status, count in counts.most_common())
    return {
        "x": at[0],
        "y": at[1],
        "text": f"{text} ({len(pks):,})" if others else text,
        "title": names[first],
        "status": shown if others else worst,
        "colour": f"harbor-graph-{COLOURS[worst]}",
        "url": "" if others else task_url(first),
    }


def _line(begin: tuple[int, int], end: tuple[int, int]) -> str:
    (x, y), (to_x, to_y) = (begin[0] + WIDTH, begin[1] + HEIGHT // 2), (end[0], end[1] + HEIGHT // 2)
    middle = (x + to_x) // 2
    return f"M{x} {y} C{middle} {y} {middle} {to_y} {to_x} {to_y}"
