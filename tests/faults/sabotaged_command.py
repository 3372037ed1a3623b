"""A management command that kills itself: `python -m tests.faults.sabotaged_command WORDS`, with SABOTAGE as in
sabotage.py."""

import sys

from django.core.management import execute_from_command_line

from tests.faults import sabotage

__all__ = ["sabotage"]

if __name__ == "__main__":
    execute_from_command_line(["manage.py", *sys.argv[1:]])
