"""The queue in Redis, the pipeline that refreshes its executions, tracked jobs, and the older designs."""

if __name__ == "tasks":
    raise ImportError("write harbor_refresh.tasks: this folder is one package, and has one name")
