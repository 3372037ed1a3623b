"""The Lua scripts for the records of jobs, and for the counters of passes."""

from tasks.queue.scripts import SHARED, Scripts

RECORDS = Scripts(
    __package__,
    {
        "job_acknowledge": ("jobs",),
        "job_begin": ("jobs", "nodes", "presence"),
        "job_check_in": ("jobs",),
        "job_memory": ("jobs", "presence"),
        "job_renew": ("jobs",),
        "job_replace": ("jobs",),
        "job_settle": ("jobs",),
        "job_stop": ("jobs",),
        "job_undo": ("jobs",),
    },
    SHARED,
    (__package__, "_job"),
)
COUNTS = Scripts(__package__, {"count": ("counts",)}, SHARED)
