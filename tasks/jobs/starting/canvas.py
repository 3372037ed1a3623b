"""Parts: signatures of Celery's canvas, and jobs that need others, as the jobs that are recorded together.

Chains, groups and chords say which jobs need which, and `needs` says what they cannot. All of them become the same
rows (Need). Results are handed on as Celery does: a step of a chain gets the result of the step before it, and
what comes after a group gets the list of its results, in order, with the groups within it laid out flat.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple, TypeAlias

from celery import chord, group
from celery.canvas import Signature, _chain, chunks, xmap, xstarmap

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.text import is_text, shown
from harbor_refresh.tasks.jobs.starting.declarations import TAKES, NewJob, NewNeed, Part, job_of
from harbor_refresh.tasks.models.job import JobInput

#: How many needs the jobs of one part may have in all.
MOST_NEEDS = 200_000
MAX_NAME = 200


@dataclass(frozen=True)
class PlannedNeed:
    job: "PlannedJob | str"
    even_if_failed: bool = False


@dataclass(eq=False)
class PlannedJob:
    """A job, or a canvas, that needs others: see `job`."""

    signature: "Signature[Any]"
    name: str = ""
    needs: "Sequence[PlannedJob | PlannedNeed | str]" = ()

    def __str__(self) -> str:
        return self.name or str(self.signature)


def job(
    signature: "Signature[Any]", *, name: str = "", needs: "Sequence[PlannedJob | PlannedNeed | str]" = ()
) -> PlannedJob:
    """Return a job that runs after the jobs that it needs, for `start` and `add`.

    Args:
        signature: Its signature. Unless it is immutable (`.si`), its first argument is the list of the results of
            `needs`, in this order.
        name: A name by which other jobs can need it.
        needs: Jobs that this function returned, or their names. They need not be given to `start` again. If one of
            them does not succeed, this job is stopped, unless it was needed `even_if_failed`.
    """
    return PlannedJob(signature, name, needs)


def needs(*jobs: PlannedJob | str, even_if_failed: bool = False) -> list[PlannedNeed]:
    """Return these jobs as needs, for `job`.

    Args:
        jobs: Jobs, or their names.
        even_if_failed: Whether the job runs whatever the status of these jobs. The result of a job that did not
            succeed is None.
    """
    return [PlannedNeed(one, even_if_failed) for one in jobs]


#: What `start` takes as jobs.
Given: TypeAlias = "Iterable[Signature[Any] | PlannedJob] | Signature[Any] | PlannedJob | group | None"


def parts_of(jobs: Any) -> Iterator[Part]:
    """Yield the parts of these: signatures and jobs that need others, or one of them by itself. The members of a
    group by itself belong to no others. Raises Refused if any of them cannot be sent or run."""
    if isinstance(jobs, group):
        jobs = _bare(jobs).tasks
    elif isinstance(jobs, Signature | PlannedJob):
        jobs = [jobs]
    elif not isinstance(jobs, Iterable):
        raise Refused(f"{TAKES}, and got {shown(jobs)}")
    planned: list[PlannedJob] = []
    for one in jobs:
        if isinstance(one, PlannedJob):
            planned.append(one)
        else:
            part = _Jobs()
            _put_all(part, one, _Before())
            yield part
    if planned:
        yield _graph_of(planned)


class _Jobs(list[NewJob]):
    """The jobs of a part. Their needs are counted as they come: those of 3,000 jobs and 3,000 others fill 1 GB."""

    needs = 0

    def append(self, job: NewJob) -> None:
        self.needs += len(job.needs)
        if self.needs > MOST_NEEDS:
            raise Refused(
                f"jobs that belong together have at most {MOST_NEEDS:,} needs in all: put a job between two large "
                "groups, which hands on what the first has returned"
            )
        super().append(job)


class _Before(NamedTuple):
    """What a job is put behind."""

    needs: Sequence[NewNeed] = ()
    takes: JobInput = JobInput.NOTHING


def _put_all(part: list[NewJob], signature: Any, before: _Before) -> _Before:
    """Put the jobs of the signature into the part, behind these. Returns what comes behind it."""
    try:
        return _put(part, signature, before)
    except RecursionError:
        while tasks := getattr(signature, "tasks", None):
            signature = tasks if isinstance(tasks, group) else next(iter(tasks))
        raise Refused(f"{TAKES}, and those that begin with {signature} are nested too deep") from None


def _put(part: list[NewJob], signature: Any, before: _Before) -> _Before:
    if isinstance(signature, _chain):
        for step in _bare(signature).tasks:
            before = _put(part, step, before)
        return before
    if isinstance(signature, chord):
        header = _bare(signature).tasks
        members = header if isinstance(header, group) else group(header)
        return _put(part, signature.body, _put(part, members, before))
    if isinstance(signature, group):
        behind = [_put(part, one, before) for one in _bare(signature).tasks]
        if not behind:
            raise Refused(f"{TAKES}, and got an empty group among them")
        return _Before([need for one in behind for need in one.needs], JobInput.LIST)
    if isinstance(signature, xmap | xstarmap | chunks):
        item = "item" if isinstance(signature, xmap) else "*item"
        each = f"group({signature.kwargs['task'].task}.s({item}) for item in items)"
        raise Refused(f"{signature.task}: write a job for each item, as in {each}")
    takes = JobInput.NOTHING if isinstance(signature, Signature) and signature.immutable else before.takes
    part.append(job_of(signature, takes, before.needs))
    return _Before([NewNeed(len(part) - 1)], JobInput.RESULT)


def _graph_of(planned: Sequence[PlannedJob]) -> list[NewJob]:
    """Return the jobs of these, and of those that they need, each behind its needs."""
    needed = _needs_of(planned)
    try:
        order = list(TopologicalSorter(needed).static_order())
    except CycleError as exc:
        raise Refused(f"jobs need each other in a circle: {' <- '.join(map(str, exc.args[1]))}") from None
    part = _Jobs()
    behind: dict[PlannedJob, _Before] = {}
    for one in order:
        its = [
            replace(need, even_if_failed=even_if_failed)
            for by, even_if_failed in needed[one].items()
            for need in behind[by].needs
        ]
        behind[one] = _put_all(part, one.signature, _Before(its, JobInput.LIST if its else JobInput.NOTHING))
    return part


def _needs_of(planned: Sequence[PlannedJob]) -> dict[PlannedJob, dict[PlannedJob, bool]]:
    """Return what each of these needs, directly or not: jobs, and whether it runs even if they fail."""
    found: dict[PlannedJob, list[PlannedNeed]] = {}
    named: dict[str, PlannedJob] = {}
    left = list(planned)
    for one in left:  # it grows
        if one.name != "" and not is_text(one.name, MAX_NAME, at_least=1):
            raise Refused(f"name takes text of at most {MAX_NAME} characters, and got {shown(one.name)}")
        if not isinstance(one.needs, list | tuple):
            raise Refused(f"job {one}: needs takes a list of jobs, and got {shown(one.needs)}")
        if one.name and named.setdefault(one.name, one) is not one:
            raise Refused(f"two jobs have the name {shown(one.name)}")
        if one not in found:
            found[one] = [by if isinstance(by, PlannedNeed) else PlannedNeed(by) for by in one.needs]
            left += (by.job for by in found[one] if isinstance(by.job, PlannedJob))

    def job_named(one: PlannedJob, by: Any) -> PlannedJob:
        if isinstance(by, PlannedJob):
            return by
        if not isinstance(by, str):
            raise Refused(f"job {one}: needs takes what `job(...)` returns, or names of jobs, and got {shown(by)}")
        if by not in named:
            raise Refused(f"job {one} needs {shown(by)}, and no job here has that name")
        return named[by]

    needed = {one: {job_named(one, by.job): by.even_if_failed for by in its} for one, its in found.items()}
    for one, its in found.items():
        if len(needed[one]) < len(its):
            raise Refused(f"job {one} needs the same job twice")
    return needed


def _bare(several: Any) -> Any:
    """Return the chain, group or chord. Raises Refused if it has options or arguments: no job would get them."""
    given = sorted(several.options.keys() - {"task_id"})
    if several.args or several.kwargs.keys() - {"tasks", "header", "body", "kwargs"}:
        given.append("arguments")
    if given:
        raise Refused(f"{several}: takes options and arguments on each of its jobs; got {', '.join(given)} on all")
    return several
