"""A runner as a process: it makes numbered reports with a spool, and writes the number of each.

Report N is of task N modulo the tasks and begins the next run of it. A run counts only if it is newer than the
last one, and each adds one to `run_count`. So a task whose `run_count` equals its revision has had every report,
in order and once.
"""

import json
import os
import sys
from collections.abc import Sequence

from harbor_refresh import client as module
from harbor_refresh.client import Client, Report


def numbered(tasks: Sequence[int], number: int) -> Report:
    round_, place = divmod(number, len(tasks))
    return Report(tasks[place], "Running", round_ + 1, f"report {number}")


def run(url: str, spool: str, tasks: Sequence[int], count: int) -> None:
    module.LONGEST_PAUSE = 0.2
    with Client(url, os.environ["HARBOR_REFRESH_TOKEN"], spool, close_timeout=60.0) as client:
        for number in range(count):
            client.report_many([numbered(tasks, number)])
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()
    sys.stdout.write(json.dumps(client.counts) + "\n")


if __name__ == "__main__":
    run(**json.loads(sys.argv[1]))
