#!/usr/bin/env python
"""Django's command line, with the development settings unless others are named."""

import os
import sys

from django.core.management import BaseCommand, ManagementUtility, load_command_class
from django.core.management.color import color_style

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


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings.dev")
    Utility(sys.argv).execute()
