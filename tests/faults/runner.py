"""Runners in processes of their own, which report that tasks have succeeded, ten at a time, all at once.

python -m tests.faults.runner PROCESSES TASK_ID …

Each is a fork of the process that imported Django, made before there is a connection to the database. To import it
in each would take longer than their reports.
"""

import os
import sys

import django

django.setup()

from harbor_refresh.executions.lifecycle.reports import Report, report  # noqa: E402


def run(task_ids: list[int]) -> None:
    for start in range(0, len(task_ids), 10):
        report([Report(pk, "Success", 1) for pk in task_ids[start : start + 10]])


processes, *task_ids = map(int, sys.argv[1:])
children = []
for number in range(processes):
    if not (child := os.fork()):
        run(task_ids[number::processes])
        sys.exit()
    children.append(child)
codes = {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children}
sys.exit(codes != {0})
