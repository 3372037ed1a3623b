"""A runner in a separate process, which reports that tasks have succeeded, ten at a time.

python -m tests.faults.runner TASK_ID …
"""

import sys

import django

django.setup()

from executions.reports import Report, report  # noqa: E402

task_ids = [int(word) for word in sys.argv[1:]]
for start in range(0, len(task_ids), 10):
    report([Report(pk, "Success", 1) for pk in task_ids[start : start + 10]])
