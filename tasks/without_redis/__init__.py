"""Jobs in one process, on PostgreSQL alone: for development and tests (docs/howto/testing.md).

`mode` says whether it is on; `agenda` does at once what other processes do otherwise: refreshes, callbacks, and
the runs of jobs in eager mode.
"""
