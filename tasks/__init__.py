"""The queue in Redis, the pipeline that refreshes its executions, tracked jobs, and the older designs.

`celery_tasks` has every Celery task. `heartbeat` sends the heartbeats of a process; `schedule` keeps beat's rows.
"""

if __name__ == "tasks":
    raise ImportError("write harbor_refresh.tasks: this folder is one package, and has one name")
