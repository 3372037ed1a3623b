"""Django's command line for `manage.py`, and for programs that are no commands of it: `python -m PACKAGE`.

Each uses the development settings unless others are named, and the servers of a running `make up` in this checkout
unless the environment names some: a mixture of two stacks would be wrong. A file of the checkout says where the
servers are. Only its owner can read it, so a command of another account finds nothing.
"""

import os
import sys
from collections.abc import Mapping, MutableMapping
from importlib import import_module
from pathlib import Path

import django

from harbor_refresh.local.checkout import Checkout

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = "settings.dev"
#: One of these in the environment says where the servers are.
ADDRESSES = ("DATABASE_URL", "REDIS_URL", "_REDIS_URL_HARBOR", "_REDIS_URL_CORE", "CELERY_BROKER_URL")
#: What a command needs, to find the same rows and keys as the stack.
FOLLOWED = (
    *ADDRESSES,
    "DATABASE_POOLED",
    "EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS",
    "REFRESH_STRATEGY",
    "REFRESH_KEY_PREFIX",
)


def followed(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the stack's environment that the commands need."""
    return {name: environ[name] for name in FOLLOWED if environ.get(name)}


def follow(root: Path, arguments: list[str], environ: MutableMapping[str, str]) -> str:
    """Add the variables of the running stack. Return what a person should know of that, if anything.

    `manage.py test` makes a database of its own. If `make up` ends a moment later, the command fails, because its
    servers are down.
    """
    named = any(environ.get(name) or environ.get(f"{name}_FILE") for name in ADDRESSES)
    if named or environ.get("DJANGO_SETTINGS_MODULE") != SETTINGS or arguments[1:2] == ["test"]:
        return ""
    checkout = Checkout(root)
    announced = checkout.announced()
    environ.update({name: value for name, value in announced.items() if name not in environ})
    if announced:
        return "With the servers of the running `make up`."
    return "`make up` is not running: with the servers at the default addresses." if checkout.logs.exists() else ""


def prepare(*, has_own_servers: bool = False) -> None:
    """Take the settings and the servers. The bench starts servers of its own."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", SETTINGS)
    if not has_own_servers and (told := follow(ROOT, sys.argv, os.environ)) and sys.stderr.isatty():
        sys.stderr.write(f"{told}\n")


def run(name: str, module: str, *, has_own_servers: bool = False) -> None:
    """Run the `Command` of the module as `python -m NAME`."""
    prepare(has_own_servers=has_own_servers)
    django.setup()
    import_module(module).Command().run_from_argv(["python -m", name, *sys.argv[1:]])
