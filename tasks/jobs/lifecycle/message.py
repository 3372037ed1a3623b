"""The message of a job, as it is published to the broker."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harbor_refresh.tasks.models.job import Job

#: The options of a job that runs later. They apply to its first run only.
LATER = ("countdown", "eta")


@dataclass(frozen=True)
class Message:
    """The published message: run this job. `database` is the name of the database that has the job."""

    job: str
    task_id: int
    name: str
    args: Sequence[Any]
    kwargs: dict[str, Any]
    options: dict[str, Any]
    revision: int
    runs: int
    has_followers: bool
    database: str
    arguments_revision: int = 0

    @classmethod
    def of(cls, job: Job, database: str) -> "Message":
        task = job.task
        return cls(
            job=task.job_id,
            task_id=task.pk,
            name=job.name,
            args=job.arguments,
            kwargs=job.kwargs,
            options={
                name: value for name, value in job.options.items() if name not in LATER or not task.run_count
            },
            revision=task.status_revision,
            runs=task.run_count,
            has_followers=job.has_followers,  # type: ignore[attr-defined]  # of `publishable`
            database=database,
            arguments_revision=job.arguments_revision,
        )


#: Sends messages. Returns those that cannot be made, with the reason; the rest is sent. Raises if the broker is
#: away.
Publish = Callable[[Sequence[Message]], Sequence[tuple[Message, str]]]
