"""The Celery tasks: one actor a file, each a few lines over the use cases of `executions`.

`actors` lists them; `tick` is what the scheduled ones have in common; `heartbeat` and `wakeup` connect a
worker to the queue; `schedule` keeps beat's rows.
"""
