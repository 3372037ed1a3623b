#!/usr/bin/env python
"""Django's command line, with the development settings unless others are named."""

import sys
from pathlib import Path

from django.core.management import execute_from_command_line

from harbor_refresh.local.program import prepare

if __name__ == "__main__":
    prepare(Path(__file__).resolve().parent)
    execute_from_command_line(sys.argv)
