"""The queue in Redis, the pipeline that refreshes its executions, tracked jobs, and the older designs.

The Celery tasks are in this folder, each in a short module of its own. `actors` lists them, and `tick` is the
base of the scheduled ones. `heartbeat` sends the heartbeats of a process; `schedule` keeps beat's rows.
"""

if __name__ == "tasks":
    raise ImportError("write harbor_refresh.tasks: this folder is one package, and has one name")
