"""Find the stack of a running `make up`, so that a command beside it needs no variable.

A command looks for the stack only if its environment names no server: a variable that is set wins, and a mixture
of two stacks would be wrong. The lock file says where the servers are. Only its owner can read it, so a command of
another account finds nothing.
"""

from collections.abc import Mapping, MutableMapping
from pathlib import Path

from harbor_refresh.local.checkout import Checkout
from harbor_refresh.local.lock import holder

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
#: Commands that start servers of their own, or need none.
ALONE = ("bench", "test")


def followed(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the stack's environment that its lock file holds."""
    return {name: environ[name] for name in FOLLOWED if environ.get(name)}


def follow(root: Path, arguments: list[str], environ: MutableMapping[str, str]) -> str:
    """Add the variables of the running stack; return its admin's address, or an empty text if nothing was added.

    What if `make up` ends a moment later: the command fails, because its servers are away.
    """
    named = [name for name in ADDRESSES if environ.get(name) or environ.get(f"{name}_FILE")]
    if named or environ.get("DJANGO_SETTINGS_MODULE") != SETTINGS or arguments[1:2] in [[one] for one in ALONE]:
        return ""
    try:
        running = holder(Checkout(root).lock)
    except OSError:  # another account's
        return ""
    if running is None or not running.variables:
        return ""
    environ.update({name: value for name, value in running.variables.items() if name not in environ})
    return running.admin
