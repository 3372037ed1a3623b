"""The view of the hook: `POST /service/notifications/tasks/ID`.

A plain view and no operation of the API, because most requests of a busy system come here, and because Harbor's
job service takes only 200 for success. Harbor's own secret may report, or an API token with the scope `report`.
"""

from django.core.exceptions import RequestDataTooBig
from django.db import Error
from django.http import HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from django.utils.crypto import constant_time_compare
from django.views.decorators.csrf import csrf_exempt

from harbor_refresh.executions.api import hook_reports
from harbor_refresh.executions.api.access import Scope, may
from harbor_refresh.executions.api.hook_reports import HookReport, read
from harbor_refresh.executions.api.problems import Problem, answer, unauthorized
from harbor_refresh.executions.attached.ownership import Operation, refuse_if_attached
from harbor_refresh.executions.conf import intake_settings
from harbor_refresh.executions.errors import DatabaseAway, NoTaskYet, OwnedByHarbor, Refused, TaskDeleted
from harbor_refresh.executions.lifecycle.reports import Refusal, Report, Source, count_refused
from harbor_refresh.executions.news import signals
from harbor_refresh.executions.status import MAX_ID

SCHEME = "Harbor-Secret"
TAKES = f"takes `Authorization: {SCHEME} SECRET` or `Authorization: Bearer TOKEN`"


def may_report(request: HttpRequest) -> None:
    """Raise Problem if the caller may not report. The hook is never open: without a secret and tokens every
    request is refused."""
    scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
    if scheme == SCHEME:
        secret = intake_settings().harbor_secret
        if not secret or not constant_time_compare(credentials, secret):
            raise unauthorized("the secret is wrong, or none is set here")
    elif not may[Scope.REPORT](request):
        raise unauthorized(f"no valid authorization was sent; {TAKES}")


@csrf_exempt
def status_hook(request: HttpRequest, task_id: str = "0") -> HttpResponse:
    """Take a report. An answer of 200 is empty, and means that it is in the database, or was there already.

    1. Refuse callers that may not report, then what is too large or cannot be read.
    2. Apply it. A check-in changes no task.
    """
    try:
        if request.method != "POST":
            raise Problem(405, "Not allowed", "takes POST", {"Allow": "POST"})
        may_report(request)
        _take(read(request.body), _id(task_id))
    except (Problem, Error, DatabaseAway, RequestDataTooBig) as exc:
        return answer(request, exc)
    except (TaskDeleted, NoTaskYet, OwnedByHarbor) as exc:
        count_refused(Source.HOOK, 1)
        return answer(request, exc)
    except (Refused, UnreadablePostError) as exc:  # the second: the sender has closed the connection
        count_refused(Source.HOOK, 1)
        signals.refused.send(sender=status_hook, refusals=[Refusal(0, Report(0, ""), str(exc))])
        return answer(request, Refused(str(exc)))
    return HttpResponse()


def _take(report: HookReport, task_id: int) -> None:
    refuse_if_attached(Operation.REPORT)
    if report.is_firing:
        hook_reports.report_firing(report, task_id)
    elif not report.check_in:
        hook_reports.report_by_job(report, task_id)


def _id(text: str) -> int:
    """Read the id in the address. An id that no task can have finds none, and the job id may find the task."""
    if not (text.isascii() and text.isdecimal()):
        raise Refused("the address takes the id of a task, a whole number")
    return int(text) if len(text) < 20 and int(text) <= MAX_ID else hook_reports.NO_TASK
