"""Which program of the service this process is."""

import sys
from pathlib import Path


def kind_of_process() -> str:
    """web, worker, beat, migrate or command. The web process is known by its application, because each server of
    WSGI has other words; the others are known by their words."""
    if not {"harbor_refresh.wsgi", "harbor_refresh.logs.for_gunicorn"}.isdisjoint(sys.modules):
        return "web"
    program, words = Path(sys.argv[0]).parts[-2:], sys.argv[1:]
    if "celery" in program:
        return next((kind for kind in ("worker", "beat") if kind in words), "command")
    return "migrate" if words[:1] == ["migrate"] else "command"
