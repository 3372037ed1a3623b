"""Problems: every error of the API has the shape of RFC 9457, as application/problem+json."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.db import Error
from django.http import HttpRequest, JsonResponse
from django.utils.log import log_response
from ninja import Schema
from ninja.errors import AuthenticationError, HttpError, ValidationError
from pydantic import Field

from harbor_refresh.executions import errors
from harbor_refresh.executions.database import HELD, NAMED, PASSING, REFERENCE, absence_translated, sqlstate
from harbor_refresh.executions.news.counters import add_later

#: For what passes by itself, in seconds.
LATER = {"Retry-After": "5"}
#: At most so many errors are named.
MAX_ERRORS = 20

NOT_AS_DESCRIBED, TOO_LARGE = "The request is not as described", "The request is too large"
#: What callers are told instead of the text of these errors, which names servers, accounts and tables.
SERVERS = (errors.DatabaseDown, errors.QueueUnavailable)
DOWN = "send the request again after `Retry-After` seconds; the log of the service says why"
#: The refusals that are counted: the caller is at fault, or was too quick.
COUNTED = (400, 401, 403, 409, 413, 422, 429)

#: The status and the title of each error of ours.
STATUSES: Mapping[type[Exception], tuple[int, str]] = {
    errors.NoSuchExecution: (404, "Not found"),
    errors.NoSuchTask: (404, "Not found"),
    errors.NoTaskYet: (404, "Not found"),
    errors.TaskDeleted: (410, "Deleted"),
    errors.NoSuchSubscription: (404, "Not found"),
    errors.NoSuchQueue: (404, "Not found"),
    errors.TooManyActions: (409, "Too many actions are open"),
    errors.OwnedByHarbor: (403, "Harbor does this"),
    errors.HasTasks: (409, "It has tasks"),
    errors.AlreadyFinal: (409, "It has ended"),
    errors.StillReferenced: (409, "A row names it"),
    errors.NotFinal: (412, "It has not ended"),
    errors.AlreadyUnderWay: (409, "It is under way"),
    errors.Refused: (400, "It cannot be used"),
    errors.Contended: (503, "Try again"),
    errors.DatabaseDown: (503, "The database is down"),
    errors.QueueUnavailable: (503, "Redis is down"),
}


class Problem(Exception):
    """An answer that is an error. `more` are further fields of its JSON, `headers` those of the answer."""

    def __init__(
        self, status: int, title: str, detail: str, headers: dict[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(detail)
        self.status, self.title, self.detail = status, title, detail
        self.headers, self.more = headers or {}, more


class Wrong(Schema):
    where: str = Field(examples=["body.reports.3.status"])
    what: str


class ProblemDetails(Schema):
    """Every error has this shape (RFC 9457)."""

    type: str = Field("about:blank", examples=["about:blank"])
    title: str = Field(examples=["Not found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["there is no execution 7"])
    errors: list[Wrong] | None = Field(None, description="Only if the request does not match the description.")


def answer(request: HttpRequest, exc: Any) -> JsonResponse:
    """Answer an error, of which `problem_of` makes a problem."""
    problem = problem_of(exc)
    if problem.status in COUNTED:
        source = {"service": "hook", "metrics": "metrics"}.get(request.path.split("/")[1], "api")
        add_later({("requests_refused", f"source={source},status={problem.status}"): 1})
    body = {"type": "about:blank", "title": problem.title, "status": problem.status, "detail": problem.detail}
    kind = "application/problem+json"
    made = JsonResponse(body | problem.more, status=problem.status, headers=problem.headers, content_type=kind)
    if problem.status == 503:
        log_response("%s: %s: %s", made.reason_phrase, request.path, f"{exc}", response=made, request=request)
    return made


def problem_of(exc: Exception) -> Problem:
    return next(MAKERS[kind] for kind in type(exc).__mro__ if kind in MAKERS)(exc)


def unauthorized(detail: str = "no valid token was sent; takes `Authorization: Bearer TOKEN`") -> Problem:
    return Problem(401, "Not authorized", detail, {"WWW-Authenticate": "Bearer"})


def _ours(status: int, title: str, exc: Exception) -> Problem:
    headers = LATER if status == 503 or isinstance(exc, errors.NoTaskYet) else {}
    # the only problem that a program should tell from others of the same status
    more = {"type": "urn:harbor-refresh:owned-by-harbor"} if isinstance(exc, errors.OwnedByHarbor) else {}
    return Problem(status, title, DOWN if isinstance(exc, SERVERS) else str(exc), headers, **more)


def _of_the_database(exc: Error) -> Problem:
    """A database that is down, or a row that stays locked for longer than a request waits, passes by itself."""
    try:
        with absence_translated():
            raise exc
    except errors.DatabaseDown as down:
        return problem_of(down)
    except Error:
        if sqlstate(exc) in PASSING:
            return Problem(503, "Try again", HELD, LATER)
        if sqlstate(exc) == REFERENCE:
            return Problem(*STATUSES[errors.StillReferenced], NAMED)
        raise


def _unusable(exc: HttpError) -> Problem:
    if isinstance(exc.__cause__, RequestDataTooBig):
        return Problem(413, TOO_LARGE, str(exc.__cause__))
    why = f": {exc.__cause__}"[:200] if exc.__cause__ else ""
    return Problem(exc.status_code, "The request cannot be used", f"{exc}{why}")


def _invalid(exc: ValidationError) -> Problem:
    wrong = []
    for one in exc.errors[:MAX_ERRORS]:
        kind, *rest = one["loc"]
        if rest and rest[0] == kind:  # Ninja puts the name of our parameter into some: `body.body.reports`
            del rest[0]
        where = ".".join(str(part)[:100] for part in (kind, *rest)[:8])
        wrong.append({"where": where, "what": one["msg"].removeprefix("Value error, ")[:200]})
    first = f"{wrong[0]['where']}: {wrong[0]['what']}" if wrong else "it is not as described"
    return Problem(422, NOT_AS_DESCRIBED, first, errors=wrong)


#: What makes a problem of each kind of error; the class nearest to the error counts.
MAKERS: Mapping[type[Exception], Callable[[Any], Problem]] = {
    Problem: lambda exc: exc,
    HttpError: _unusable,
    RequestDataTooBig: lambda exc: Problem(413, TOO_LARGE, str(exc)),
    ValidationError: _invalid,
    AuthenticationError: lambda exc: unauthorized(),
    Error: _of_the_database,
    **{kind: partial(_ours, status, title) for kind, (status, title) in STATUSES.items()},
}
