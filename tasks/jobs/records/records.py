"""JobRecords: the operations on the records of jobs in progress. Each is one Lua script, so each is atomic.

Owns the rules of a run: a job runs once at a time, under a lease that its process renews; only that run can end
it; a run whose job was given to another node changes no record. This module does not know the database.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast

from harbor_refresh.executions.status import is_final
from harbor_refresh.executions.text import storable
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs.records.arguments import Request
from harbor_refresh.tasks.jobs.records.record import JobRecord
from harbor_refresh.tasks.jobs.records.run import Begun, LeaseAnswer, ReceivedMessage, Run, Verdict
from harbor_refresh.tasks.jobs.records.scripts import RECORDS
from harbor_refresh.tasks.jobs.records.without_redis import RecordsWithoutRedis
from harbor_refresh.tasks.jobs.revisions import are_unix_seconds
from harbor_refresh.tasks.queue.connection import patient, redis_errors_translated, single
from harbor_refresh.tasks.queue.sets import pages
from harbor_refresh.tasks.queue.verbs import Verbs
from harbor_refresh.tasks.without_redis import mode

#: The most jobs in one command to Redis, and in one statement to the database.
PAGE = 500
#: The field that holds the memory of this Redis. It cannot be a job, because no job has an empty id.
MEMORY = b""
#: How a name that is no text is decoded, so that it can be encoded again.
KEPT = "surrogateescape"


@dataclass(frozen=True)
class Memory:
    """The memory of Redis, see lua/job_memory-2.lua. `epoch` is when it began, `now` is its clock, both in
    microseconds. If it `is_settled`, a silent run is dead."""

    now: int
    epoch: int
    sequence: int
    is_settled: bool


class JobRecords(Verbs):
    scripts = RECORDS

    def begin(self, received: ReceivedMessage, node: str) -> Begun:
        """Begin a run if Redis allows it. Sent once: a repeated call would find its own run alive."""
        verdict, revision, runs, before, requested = self._run(
            "job_begin",
            job=received.job,
            task=received.task_id,
            node=node,
            ttl=self._ttl_us,
            revision=received.revision,
            runs=received.runs,
            are_unix=int(are_unix_seconds()),
            once=True,
        )
        run = Run(received.job, received.task_id, node, int(revision), runs)
        request = Request.read(received.job, requested.decode(errors="replace"))
        arguments = request.arguments if request and request.task_id == received.task_id else None
        return Begun(Verdict(verdict.decode()), run, before.decode(errors="replace"), arguments)

    def undo(self, begun: Begun, *, instead: str | None = None) -> bool:
        """Undo a run whose code was never called: restore the record that was there, or write `instead`. False if
        the job belongs to another run by now."""
        run = begun.run
        text = begun.before if instead is None else instead
        return bool(self._run("job_undo", job=run.job, node=run.node, revision=run.revision, record=text))

    def check_in(self, run: Run, message: str = "") -> bool:
        """Record a message of the run. True if the run should stop."""
        return bool(self._run("job_check_in", job=run.job, node=run.node, revision=run.revision, message=message))

    def renew(self, runs: Sequence[Run], *, forgotten_too: bool = False) -> list[LeaseAnswer]:
        """Renew the leases of runs that are under way, and return how each was found. `forgotten_too`: write lost
        records again."""
        found: list[LeaseAnswer] = []
        for page in pages(runs, PAGE):
            parts = [part for run in page for part in run.named.values()]
            answers = self._run("job_renew", *parts, forgotten_too=int(forgotten_too))
            found += [LeaseAnswer(answer.decode()) for answer in answers]
        return found

    def settle(
        self, run: Run, status: str, message: str, *, delay: float = 0.0, arguments: str = "", given: int = 0
    ) -> int | None:
        """End the run. `arguments` is JSON, if another try shall have others; `given` is the revision of those of
        the run. Returns the new revision of the job, or None if the job belongs to another run by now."""
        end = {"status": status, "delay": round(delay * 1_000_000), "message": message}
        end |= {"arguments": arguments, "given": given}
        end["are_unix"] = int(are_unix_seconds())
        now = self._run("job_settle", **run.named, **end, once=not is_final(status))
        return int(now) if now else None

    def acknowledge(self, reports: Iterable[tuple[str, int, str]]) -> int:
        """Record that each (job, revision, status) is in the database. Returns how many records were deleted."""
        return sum(
            self._run("job_acknowledge", *(part for one in page for part in one)) for page in pages(reports, PAGE)
        )

    def requests(self) -> Iterator[Sequence[tuple[str, Request | None]]]:
        """Yield in pages the arguments that jobs have asked for and the database may not have; None for an
        unreadable request, also if its name is no text."""
        for found in self._pages(self.keys.arguments):
            yield [(job, Request.read(job, text) if storable(job) else None) for job, text in found.items()]

    def arguments_are_written(self, arguments: Iterable[tuple[str, int]]) -> None:
        """Forget requests of these jobs, because arguments of this revision are in the database."""
        for page in pages(arguments, PAGE):
            self._run("job_arguments_written", *(part for one in page for part in one))

    def stop(self, jobs: Iterable[str]) -> int:
        """Stop jobs whose tasks have been stopped. Returns how many run, and were asked to stop."""
        return sum(self._run("job_stop", *page) for page in pages(jobs, PAGE))

    def add(self, records: Sequence[JobRecord]) -> list[bool]:
        """Add records of jobs that have none. False for each job that has one."""
        with redis_errors_translated():
            return [bool(self._redis.hsetnx(self.keys.jobs, one.job, one.text)) for one in records]

    def replace(self, changes: Sequence[tuple[JobRecord, JobRecord | None]]) -> list[bool]:
        """Replace or delete each record, if it is still the one that was read."""
        done: list[bool] = []
        for page in pages(changes, PAGE):
            args = [part for old, new in page for part in (old.job, old.text, new.text if new else "")]
            done += map(bool, self._run("job_replace", *args))
        return done

    def all(self) -> Iterator[Sequence[tuple[str, JobRecord | None]]]:
        """Yield every record in pages; None for an unreadable one, also if its name is no text. A record may come
        twice."""
        for found in self._pages(self.keys.jobs):
            yield [(job, JobRecord.read(job, text) if storable(job) else None) for job, text in found.items()]

    def _pages(self, key: str) -> Iterator[dict[str, str]]:
        cursor = 0
        while True:
            with redis_errors_translated():
                cursor, found = cast("tuple[int, dict[bytes, bytes]]", self._redis.hscan(key, cursor, count=PAGE))
            found.pop(MEMORY, None)
            if found:
                yield {job.decode(errors=KEPT): raw.decode(errors="replace") for job, raw in found.items()}
            if not cursor:
                return

    def of(self, jobs: Sequence[str]) -> dict[str, JobRecord]:
        """Return the records of these jobs. Jobs without a record are left out."""
        records = {}
        for page in pages(jobs, PAGE):
            with redis_errors_translated():
                raws = cast("list[bytes | None]", self._redis.hmget(self.keys.jobs, page))
            for job, raw in zip(page, raws, strict=True):
                if raw and (record := JobRecord.read(job, raw.decode(errors="replace"))):
                    records[job] = record
        return records

    def forget(self, jobs: Sequence[str]) -> None:
        """Delete unreadable records."""
        self._delete(self.keys.jobs, jobs)

    def forget_requests(self, jobs: Sequence[str]) -> None:
        """Delete unreadable requests."""
        self._delete(self.keys.arguments, jobs)

    def _delete(self, key: str, jobs: Sequence[str]) -> None:
        with redis_errors_translated():
            self._redis.hdel(key, *(job.encode(errors=KEPT) for job in jobs))

    def memory(self, noted_epoch: int | None = None, noted_sequence: int = 0) -> Memory:
        """Return the memory of Redis. If it is older than what was noted of it, a new epoch begins."""
        noted = "" if noted_epoch is None else noted_epoch
        now, epoch, sequence, is_settled = self._run(
            "job_memory", ttl=self._ttl_us, noted_epoch=noted, noted_sequence=noted_sequence
        )
        return Memory(int(now), int(epoch), sequence, bool(is_settled))

    def begin_epoch(self) -> None:
        """Begin a new epoch with the next look at the memory, because the broker has lost the messages of jobs."""
        with redis_errors_translated():
            self._redis.hdel(self.keys.jobs, MEMORY)

    def is_alive(self, record: JobRecord, now: int) -> bool:
        """Whether the lease of this run is valid. A lease from the future comes from a clock that has gone
        back."""
        return abs(now - record.renewed) <= self._ttl_us

    def is_silent(self, record: JobRecord, now: int) -> bool:
        """Whether nothing was heard of this job for longer than a lease lasts."""
        return now - record.checked_in > self._ttl_us


def job_records() -> JobRecords:
    return cast("JobRecords", WITHOUT_REDIS) if mode.is_on() else _in_redis()


@cache
def _in_redis() -> JobRecords:
    return JobRecords(refresh_settings(), patient(), single())


WITHOUT_REDIS = RecordsWithoutRedis()
