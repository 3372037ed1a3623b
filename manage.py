#!/usr/bin/env python
"""Django's command line, with the development settings unless others are named."""

import os
import sys
from pathlib import Path

from django.core.management import BaseCommand, ManagementUtility, load_command_class
from django.core.management.color import color_style

from harbor_refresh.local.running import follow

#: The commands of packages that are not installed apps, because nothing in production needs them.
COMMANDS = {"bench": "benchmarks", "simulate": "examples.simulation"}


class Utility(ManagementUtility):
    """Django's, with COMMANDS beside those of the installed apps."""

    def main_help_text(self, commands_only: bool = False) -> str:
        text = super().main_help_text(commands_only)
        if commands_only:
            return "\n".join(sorted([*text.splitlines(), *COMMANDS]))
        notice = color_style().NOTICE
        return text + "".join(f"\n\n{notice(f'[{package}]')}\n    {name}" for name, package in COMMANDS.items())

    def fetch_command(self, subcommand: str) -> BaseCommand:
        if subcommand in COMMANDS:
            return load_command_class(COMMANDS[subcommand], subcommand)
        return super().fetch_command(subcommand)


def follow_local_stack() -> None:
    """Use the servers of a running `make up` in this directory, if the environment names none."""
    if (admin := follow(Path(__file__).resolve().parent, sys.argv, os.environ)) and sys.stderr.isatty():
        sys.stderr.write(f"With the servers of the running `make up`, {admin}\n")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings.dev")
    follow_local_stack()
    Utility(sys.argv).execute()
