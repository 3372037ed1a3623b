"""`manage.py` finds the commands of the packages that are not installed apps."""

import pytest
from django.core.management import get_commands

from manage import COMMANDS, Utility


def test_benchmarks_and_examples_are_no_installed_apps() -> None:
    assert not set(COMMANDS) & set(get_commands())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_of_the_table_is_found(name: str) -> None:
    command = Utility(["manage.py"]).fetch_command(name)
    assert type(command).__module__ == f"{COMMANDS[name]}.management.commands.{name}"


def test_help_lists_the_commands_of_the_table() -> None:
    text = Utility(["manage.py"]).main_help_text()
    assert "[benchmarks]" in text
    assert "    simulate" in text.splitlines()
    names = Utility(["manage.py"]).main_help_text(commands_only=True).splitlines()
    assert names == sorted([*get_commands(), *COMMANDS])


def test_a_command_of_django_is_still_found() -> None:
    assert type(Utility(["manage.py"]).fetch_command("migrate")).__module__.startswith("django.")
