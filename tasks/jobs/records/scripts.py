"""The Lua scripts for the records of jobs, and for the counters of passes."""

from harbor_refresh.tasks.queue.scripts import Script, Scripts

RECORDS = Scripts(
    __package__,
    {
        "job_acknowledge": Script(("jobs",)),
        "job_arguments_written": Script(("arguments",)),
        "job_begin": Script(
            ("jobs", "nodes", "presence", "arguments"),
            ("job", "task", "node", "ttl", "revision", "runs", "are_unix"),
        ),
        "job_check_in": Script(("jobs",), ("job", "node", "revision", "message")),
        "job_memory": Script(("jobs", "presence"), ("ttl", "noted_epoch", "noted_sequence")),
        "job_renew": Script(("jobs",), ("forgotten_too",)),
        "job_replace": Script(("jobs",)),
        "job_settle": Script(
            ("jobs", "arguments"),
            (
                *("job", "task", "node", "revision", "runs", "status", "delay", "message", "are_unix"),
                *("arguments", "given"),
            ),
        ),
        "job_stop": Script(("jobs",)),
        "job_undo": Script(("jobs",), ("job", "node", "revision", "record")),
    },
)
COUNTS = Scripts(__package__, {"count": Script(("counts",), ("kind",))})
