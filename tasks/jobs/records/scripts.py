"""The Lua scripts for the records of jobs, and for the counters of passes."""

from tasks.queue.scripts import Script, Scripts

RECORDS = Scripts(
    __package__,
    {
        "job_acknowledge": Script(("jobs",)),
        "job_begin": Script(("jobs", "nodes", "presence")),
        "job_check_in": Script(("jobs",)),
        "job_memory": Script(("jobs", "presence")),
        "job_renew": Script(("jobs",)),
        "job_replace": Script(("jobs",)),
        "job_settle": Script(("jobs",)),
        "job_stop": Script(("jobs",)),
        "job_undo": Script(("jobs",)),
    },
)
COUNTS = Scripts(__package__, {"count": Script(("counts",))})
