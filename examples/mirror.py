"""Mirror a repository: one job for each artifact, and one execution whose status follows from the jobs.

celery -A harbor_refresh worker -c 2 --include examples.mirror
python -m examples.mirror library/alpine 20
"""

import random
import sys
import time

import django

from harbor_refresh.celery import app

django.setup()  # only in a program of its own; a Django project has done this already

from harbor_refresh.tasks.jobs import Handle, TrackedJob, start

LAYERS = 5


class RegistryBusy(Exception):
    """The other registry has answered 429."""


@app.task(base=TrackedJob, name="examples.replicate", autoretry_for=(RegistryBusy,), default_retry_delay=1)
def replicate(job: Handle, repository: str, tag: str) -> None:
    """Copy an artifact, layer by layer. Here copying is a sleep.

    One of 20 runs finds the other registry busy and is retried, and one of 50 fails. Which runs these are depends
    only on the name of the artifact and the number of the retry.
    """
    rng = random.Random(f"{repository}:{tag}, try {replicate.request.retries}")
    for layer in range(1, LAYERS + 1):
        if job.should_stop():
            return
        job.check_in(f"{repository}:{tag}, layer {layer} of {LAYERS}", done=layer, of=LAYERS)
        time.sleep(rng.uniform(0.02, 0.12))
    if rng.random() < 0.05:
        raise RegistryBusy(f"429, {repository}:{tag} later")
    if rng.random() < 0.02:
        raise ValueError(f"{repository}:{tag} has another digest than its manifest says")


def main(repository: str, count: int) -> None:
    tags = [f"1.{number}" for number in range(count)]
    execution = start("REPLICATION", vendor_id=1, jobs=[replicate.s(repository, tag) for tag in tags])
    print(f"{execution} has {count} jobs")
    while execution.status == "Running":
        time.sleep(0.5)
        execution.refresh_from_db()
        progress = execution.progress()
        print(f"{progress.share:4.0%}  {progress.counts}  {progress.eta or ''}")
    print(f"{execution} is {execution.status}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
