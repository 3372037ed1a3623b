"""Parts: signatures of Celery's canvas, and jobs that need others, as the jobs that are recorded together.

    start("BUILD", jobs=[group(fetch.s(n) for n in pages) | merge.s()])

    fetch_a, fetch_b = job(fetch.s("a")), job(fetch.s("b"))
    start("BUILD", jobs=[job(parse.s(), needs=[fetch_a, fetch_b])])

Chains, groups and chords say which jobs need which, and `needs` says what they cannot. All of them become the same
rows (Need). Results are handed on as Celery does: a step of a chain gets the result of the step before it, and
what comes after a group gets the list of its results, in order, with the groups within it laid out flat.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeAlias

from celery import chord, group
from celery.canvas import Signature, _chain

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.text import is_text, shown
from harbor_refresh.tasks.jobs.starting.records import NewJob, NewNeed, Part
from harbor_refresh.tasks.jobs.starting.signatures import TAKES, job_of
from harbor_refresh.tasks.models.job import Takes

#: How deep signatures may be nested, and how many needs the jobs of one part may have in all.
MOST_DEEP, MOST_NEEDS = 100, 200_000
MAX_NAME = 200


@dataclass(eq=False)
class PlannedJob:
    """A job, or a canvas, that needs others: see `job`."""

    signature: "Signature[Any]"
    name: str = ""
    needs: "Sequence[PlannedJob | PlannedNeed | str]" = ()

    def __str__(self) -> str:
        return self.name or str(self.signature)


@dataclass(frozen=True)
class PlannedNeed:
    job: PlannedJob | str
    even_if_failed: bool


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
        jobs = _without_options(jobs).tasks
    elif isinstance(jobs, Signature | PlannedJob):
        jobs = [jobs]
    elif not isinstance(jobs, Iterable):
        raise Refused(f"{TAKES}, and got {shown(jobs)}")
    checked: set[str] = set()
    planned: list[PlannedJob] = []
    for one in jobs:
        if isinstance(one, PlannedJob):
            planned.append(one)
        else:
            part = _Part(checked)
            part.put(one, _Before())
            yield part.jobs
    if planned:
        yield _graph_of(planned, checked)


@dataclass(frozen=True)
class _Before:
    """What a job is put behind."""

    needs: Sequence[NewNeed] = ()
    takes: Takes = Takes.NOTHING


@dataclass
class _Part:
    #: The names of tasks that are checked already.
    checked: set[str]
    jobs: list[NewJob] = field(default_factory=list)
    count: int = 0

    def put(self, signature: Any, before: _Before, depth: int = 0) -> _Before:
        """Put the jobs of the signature behind these. Returns what comes behind it."""
        if depth > MOST_DEEP:
            raise Refused(f"{TAKES}, and these are nested more than {MOST_DEEP} deep")
        if isinstance(signature, _chain):
            for step in _without_options(signature).tasks:
                before = self.put(step, before, depth + 1)
            return before
        if isinstance(signature, group):
            return self._put_group(_without_options(signature).tasks, before, depth)
        if isinstance(signature, chord):
            header = _without_options(signature).tasks
            members = header.tasks if isinstance(header, group) else header
            return self.put(signature.body, self._put_group(members, before, depth), depth + 1)
        return self._put_job(signature, before)

    def _put_group(self, members: Any, before: _Before, depth: int) -> _Before:
        behind = [self.put(one, before, depth + 1) for one in members]
        if not behind:
            raise Refused(f"{TAKES}, and got an empty group among them")
        return _Before([need for one in behind for need in one.needs], Takes.LIST)

    def _put_job(self, signature: Any, before: _Before) -> _Before:
        self.count += len(before.needs)
        if self.count > MOST_NEEDS:
            raise Refused(
                f"jobs that belong together have at most {MOST_NEEDS:,} needs in all: put a job between two large "
                "groups, which hands on what the first has returned"
            )
        is_immutable = isinstance(signature, Signature) and signature.immutable
        takes = Takes.NOTHING if is_immutable else before.takes
        self.jobs.append(job_of(signature, self.checked, takes, before.needs))
        return _Before([NewNeed(len(self.jobs) - 1)], Takes.RESULT)


def _graph_of(planned: Sequence[PlannedJob], checked: set[str]) -> Part:
    """Return the jobs of these, and of those that they need, each behind its needs."""
    needed = _needs_of(planned)
    try:
        before = {one: [by.job for by in its] for one, its in needed.items()}
        order = list(TopologicalSorter(before).static_order())
    except CycleError as exc:
        raise Refused(f"jobs need each other in a circle: {' <- '.join(map(str, exc.args[1]))}") from None
    part = _Part(checked)
    behind: dict[Any, _Before] = {}
    for one in order:
        its = [
            replace(need, even_if_failed=by.even_if_failed) for by in needed[one] for need in behind[by.job].needs
        ]
        behind[one] = part.put(one.signature, _Before(its, Takes.LIST if its else Takes.NOTHING))
    return part.jobs


def _needs_of(planned: Sequence[PlannedJob]) -> dict[Any, list[PlannedNeed]]:
    """Return what each of these needs, and each of those, with jobs in the place of names."""
    found: dict[Any, list[PlannedNeed]] = {}
    left = list(reversed(planned))
    while left:
        one = left.pop()
        if one not in found:
            found[one] = [_need(one, given) for given in _listed(one)]
            left += (by.job for by in reversed(found[one]) if isinstance(by.job, PlannedJob))
    named: dict[str, PlannedJob] = {}
    for one in found:
        if one.name and named.setdefault(one.name, one) is not one:
            raise Refused(f"two jobs have the name {shown(one.name)}")
    for one, its in found.items():
        for place, by in enumerate(its):
            if isinstance(by.job, str):
                if by.job not in named:
                    raise Refused(f"job {one} needs {shown(by.job)}, and no job here has that name")
                its[place] = replace(by, job=named[by.job])
        if len({by.job for by in its}) < len(its):
            raise Refused(f"job {one} needs the same job twice")
    return found


def _listed(one: PlannedJob) -> Sequence[Any]:
    if not (one.name == "" or is_text(one.name, MAX_NAME, at_least=1)):
        raise Refused(f"name takes text of at most {MAX_NAME} characters, and got {shown(one.name)}")
    if isinstance(one.needs, list | tuple):
        return one.needs
    raise Refused(f"job {one}: needs takes a list of jobs, and got {shown(one.needs)}")


def _need(one: PlannedJob, given: Any) -> PlannedNeed:
    need = given if isinstance(given, PlannedNeed) else PlannedNeed(given, even_if_failed=False)
    if isinstance(need.job, PlannedJob | str):
        return need
    raise Refused(f"job {one}: needs takes what `job(...)` returns, or names of jobs, and got {shown(need.job)}")


def _without_options(several: Any) -> Any:
    """Return the chain, group or chord. Raises Refused if it has options: none of its jobs would get them."""
    if options := several.options.keys() - {"task_id"}:
        raise Refused(f"{several}: takes options on each of its jobs; got {', '.join(sorted(options))} on all")
    return several
