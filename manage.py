#!/usr/bin/env python
"""Django's command line, with the development settings unless others are named."""

import sys

from django.core.management import execute_from_command_line

from harbor_refresh.local.program import prepare

if __name__ == "__main__":
    prepare()
    execute_from_command_line(sys.argv)
