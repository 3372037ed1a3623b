"""`manage.py harbor_refresh COMMAND …`: run a command of ours, whatever other apps have commands of its name.

Names such as `sweep` are common words, and of two apps with one name Django runs the command of the first in
INSTALLED_APPS.
"""

from pathlib import Path

from django.apps import apps
from django.core.management import BaseCommand, find_commands, load_command_class

#: The last is the service, or the part of it that a host may install for `doctor` and `alive`.
OURS = ("harbor_executions", "harbor_tasks", "harbor_refresh")
MISUSED = 2


def commands() -> dict[str, str]:
    """Our commands, each with the name of its app."""
    found = [app for app in apps.get_app_configs() if app.label in OURS]
    names = {name: app.name for app in found for name in find_commands(str(Path(app.path) / "management"))}
    return {name: names[name] for name in sorted(names) if name != Path(__file__).stem}


class Command(BaseCommand):
    help = "Run a command of Harbor Refresh, also if another app has a command of the same name."

    def run_from_argv(self, argv: list[str]) -> None:
        ours = commands()
        name = argv[2] if len(argv) > 2 else ""
        if name not in ours:
            asked = name in ("-h", "--help")
            usage = f"usage: {Path(argv[0]).name} {argv[1]} COMMAND …\n\n{self.help}\n\n"
            usage += f"commands: {', '.join(ours)}"
            (self.stdout if asked else self.stderr).write(usage)
            raise SystemExit(0 if asked else MISUSED)
        load_command_class(ours[name], name).run_from_argv([argv[0], name, *argv[3:]])
