"""JobRecords: the verbs over the records of jobs in progress, each one Lua script, each atomic.

Owns what a run means: a job runs once at a time, on a node that is alive; only that node can end its run; a
run that was given to another can change nothing. Knows nothing of the database.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast

from executions.conf import refresh_settings
from executions.queue.connection import patient, redis_errors_translated, single
from executions.queue.job_record import MAX_MESSAGE, JobRecord
from executions.queue.run import Offer, Run, Verdict
from executions.queue.sets import pages
from executions.queue.verbs import Verbs
from executions.status import is_final

PAGE = 500
#: For so long stops and doubts are remembered. A message that is older asks the database.
MEMORY_US = 24 * 3600 * 1_000_000


@dataclass(frozen=True)
class Memory:
    """Redis remembers since then, in microseconds: it was empty. While that `is_fresh`, not all who are alive have
    told it again what they run. It `is_complete` when what it cannot know has been looked up."""

    since: int
    is_fresh: bool
    is_complete: bool


class JobRecords(Verbs):
    def begin(self, offer: Offer, node: str) -> tuple[Verdict, Run]:
        """Whether it runs now, and as what. Sent once: twice, it would find itself alive."""
        verdict, revision, runs, now = self._run(
            "job_begin",
            *(offer.job, offer.task_id, node, self._ttl_us, offer.revision, offer.runs, offer.most),
            *(offer.published, MEMORY_US, offer.why_exhausted),
            once=True,
        )
        return Verdict(verdict.decode()), Run(offer.job, offer.task_id, node, revision, runs, int(now))

    def check_in(self, run: Run, message: str = "") -> bool:
        """The run goes on; True if it should stop."""
        return bool(self._run("job_check_in", *run.args, message[:MAX_MESSAGE]))

    def settle(self, run: Run, status: str, message: str, *, delay: float = 0.0) -> int | None:
        """The run has ended. The revision it has now, or None if it was somebody else's by then."""
        args = (*run.args, status, round(delay * 1_000_000), message)
        now = self._run("job_settle", *args, once=not is_final(status))
        return now if now >= 0 else None

    def acknowledge(self, landed: Iterable[tuple[str, int, str]]) -> int:
        """These (job, revision, status) are in the database. Returns how many are over and forgotten."""
        return sum(
            self._run("job_acknowledge", *(part for one in page for part in one)) for page in pages(landed, PAGE)
        )

    def stop(self, jobs: Iterable[str]) -> int:
        """Returns how many run, and were asked to stop."""
        return sum(self._run("job_stop", MEMORY_US, *page) for page in pages(jobs, PAGE))

    def forget_stops(self, jobs: Sequence[str]) -> None:
        """Of jobs that are to run again."""
        for page in pages(jobs, PAGE):
            with redis_errors_translated():
                self._redis.zrem(self.keys.stops, *page)

    def add(self, record: JobRecord) -> bool:
        """False if the job has a record."""
        with redis_errors_translated():
            return bool(self._redis.hsetnx(self.keys.jobs, record.job, record.text))

    def replace(self, changes: Sequence[tuple[JobRecord, JobRecord | None]]) -> list[bool]:
        """Each record by another, or by none, if it is still what was read."""
        done: list[bool] = []
        for page in pages(changes, PAGE):
            args = [part for old, new in page for part in (old.job, old.text, new.text if new else "")]
            done += map(bool, self._run("job_replace", *args))
        return done

    def all(self) -> Iterator[Sequence[tuple[str, JobRecord | None]]]:
        """Every record there is, in pages; None for one that cannot be read. One may come twice."""
        cursor = 0
        while True:
            with redis_errors_translated():
                cursor, found = cast(
                    "tuple[int, dict[bytes, bytes]]", self._redis.hscan(self.keys.jobs, cursor, count=PAGE)
                )
            if found:
                texts = {job.decode(errors="replace"): raw.decode(errors="replace") for job, raw in found.items()}
                yield [(job, JobRecord.read(job, text)) for job, text in texts.items()]
            if not cursor:
                return

    def of(self, jobs: Sequence[str]) -> dict[str, JobRecord]:
        """The records of these jobs, of those that have one."""
        records = {}
        for page in pages(jobs, PAGE):
            with redis_errors_translated():
                raws = cast("list[bytes | None]", self._redis.hmget(self.keys.jobs, page))
            for job, raw in zip(page, raws, strict=True):
                if raw and (record := JobRecord.read(job, raw.decode(errors="replace"))):
                    records[job] = record
        return records

    def forget(self, jobs: Sequence[str]) -> None:
        """Records that nobody can read."""
        with redis_errors_translated():
            self._redis.hdel(self.keys.jobs, *jobs)

    def clock(self, doubtful: Sequence[str] = ()) -> tuple[int, int]:
        """Redis's time, and since when it remembers, in microseconds; whose message may come twice is noted."""
        now, since = self._run("job_doubt", MEMORY_US, *doubtful)
        return int(now), int(since)

    def memory(self, *, looked_up: int = 0) -> Memory:
        """What Redis can know; `looked_up`: what it could not since then has been looked up."""
        since, is_fresh, is_complete = self._run("job_memory", self._ttl_us, looked_up)
        return Memory(int(since), bool(is_fresh), bool(is_complete))


@cache
def job_records() -> JobRecords:
    return JobRecords(refresh_settings(), patient(), single())
