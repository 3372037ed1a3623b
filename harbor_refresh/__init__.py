"""The public names: `from harbor_refresh import TrackedJob, start`. docs/reference/python.md has the public
modules, too. Every other name is private and may change.

A name is loaded when it is asked for: models can be imported only once Django's apps are ready, and a program that
reports over HTTP (`harbor_refresh.client`) needs no Django.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harbor_refresh.executions.admin.execution_inline import ExecutionInline as ExecutionInline
    from harbor_refresh.executions.admin.site_pages import register_admin as register_admin
    from harbor_refresh.executions.errors import AlreadyFinal as AlreadyFinal
    from harbor_refresh.executions.errors import AlreadyUnderWay as AlreadyUnderWay
    from harbor_refresh.executions.errors import Contended as Contended
    from harbor_refresh.executions.errors import ExecutionClosed as ExecutionClosed
    from harbor_refresh.executions.errors import NoSuchExecution as NoSuchExecution
    from harbor_refresh.executions.errors import NotCommitted as NotCommitted
    from harbor_refresh.executions.errors import RefreshError as RefreshError
    from harbor_refresh.executions.errors import Refused as Refused
    from harbor_refresh.executions.errors import StillRunning as StillRunning
    from harbor_refresh.executions.news.handlers import Change as Change
    from harbor_refresh.executions.news.handlers import on_execution as on_execution
    from harbor_refresh.executions.queries.host_views import execution_urls as execution_urls
    from harbor_refresh.tasks.broker.celery_app import connect as connect
    from harbor_refresh.tasks.jobs import EndedExecution as EndedExecution
    from harbor_refresh.tasks.jobs import Handle as Handle
    from harbor_refresh.tasks.jobs import JobResult as JobResult
    from harbor_refresh.tasks.jobs import TrackedExecution as TrackedExecution
    from harbor_refresh.tasks.jobs import TrackedJob as TrackedJob
    from harbor_refresh.tasks.jobs import astart as astart
    from harbor_refresh.tasks.jobs import job as job
    from harbor_refresh.tasks.jobs import needs as needs
    from harbor_refresh.tasks.jobs import start as start

#: The public names of each module.
_MODULES = {
    "harbor_refresh.executions.admin.execution_inline": "ExecutionInline",
    "harbor_refresh.executions.admin.site_pages": "register_admin",
    "harbor_refresh.executions.errors": "AlreadyFinal AlreadyUnderWay Contended ExecutionClosed NoSuchExecution "
    "NotCommitted RefreshError Refused StillRunning",
    "harbor_refresh.executions.news.handlers": "Change on_execution",
    "harbor_refresh.executions.queries.host_views": "execution_urls",
    "harbor_refresh.tasks.broker.celery_app": "connect",
    "harbor_refresh.tasks.jobs": "EndedExecution Handle JobResult TrackedExecution TrackedJob "
    "astart job needs start",
}
__all__ = [name for names in _MODULES.values() for name in names.split()]


# A type checker would take it for any name, and so would not find a name that is misspelled.
if not TYPE_CHECKING:

    def __getattr__(name):
        for module, names in _MODULES.items():
            if name in names.split():
                try:
                    found = globals()[name] = getattr(import_module(module), name)
                except RuntimeError as exc:
                    if "INSTALLED_APPS" in str(exc):  # Django names a model, and not what to add
                        exc.add_note(import_module("harbor_refresh.executions.conf.startup").INSTALL)
                    raise
                return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__})
