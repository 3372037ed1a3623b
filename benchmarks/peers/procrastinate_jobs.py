"""The task of procrastinate, and the periodic task that its documentation advises: it tries the jobs again whose
worker sends no heartbeat any more."""

import os

from procrastinate import App, JobContext, PsycopgConnector

from benchmarks.peers import effects

app = App(connector=PsycopgConnector(conninfo=os.environ.get("DATABASE_URL", "")))


@app.task(name="bench.peers.noted")
def noted(number: int) -> None:
    effects.note(number)


@app.periodic(cron="* * * * * */10")
@app.task(queueing_lock="bench.peers.stalled", pass_context=True)
async def retry_stalled(context: JobContext, timestamp: int) -> None:
    for job in await app.job_manager.get_stalled_jobs():
        await app.job_manager.retry_job(job)
