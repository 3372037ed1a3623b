"""The screens of API tokens (make one, see when it was last used, revoke it) and of the log of actions."""

from enum import StrEnum
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import NoReverseMatch
from django.utils import timezone
from django.utils.safestring import SafeString

from harbor_refresh.executions.admin.base import asks_first, may
from harbor_refresh.executions.admin.filters import filter_by
from harbor_refresh.executions.admin.formatters import NOTHING, column, label, link
from harbor_refresh.executions.admin.lists import ReadOnlyAdmin
from harbor_refresh.executions.admin.site_pages import admin_url, page
from harbor_refresh.executions.api import api_tokens
from harbor_refresh.executions.models import ApiToken, AuditEntry
from harbor_refresh.executions.models.operations import Outcome
from harbor_refresh.executions.news.audit import Target, Word, note, noted, person_of

COLOURS: dict[str, str] = {Outcome.DONE: "success", Outcome.UNCHANGED: "default", Outcome.FAILED: "danger"}
#: The model of a target, if its kind is not the name of a model of this app.
MODELS: dict[str, str] = {
    Target.QUARANTINE: "harbor_executions_execution",
    Target.EXECUTIONS: "harbor_executions_execution",
    Target.SCHEDULE: "django_celery_beat_periodictask",
    Target.INTERVAL: "django_celery_beat_intervalschedule",
    Target.CRONTAB: "django_celery_beat_crontabschedule",
    Target.USER: "auth_user",
    Target.GROUP: "auth_group",
}


def _filter_by(title: str, parameter: str, words: type[StrEnum]) -> Any:
    options = ((word.value, word.capitalize()) for word in sorted(words))
    return filter_by(title, parameter, *options, narrows=True)


@page(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("when", "by", "origin", "address", "verb", "what", "how_many", "shown_outcome", "detail")
    list_display_links = None
    list_filter = (
        _filter_by("what was done", "verb", Word),
        _filter_by("to what", "kind", Target),
        "origin",
        "at",
    )
    fields = ("when", ("by", "origin", "address"), ("verb", "what"), ("how_many", "shown_outcome"), "detail")
    search_fields = ("by",)
    search_help_text = "The full name of the user or token, or the id of the target"

    def matching(self, rows: QuerySet[AuditEntry], text: str) -> QuerySet[AuditEntry]:
        """By name or by target, which have indexes. A name may have spaces in it."""
        if not (text := text.strip()):
            return rows
        return rows.filter(by=text) | rows.filter(kind__in=[kind.value for kind in Target], target=text)

    @admin.display(description="To what")
    def what(self, entry: AuditEntry) -> SafeString | str:
        by = ", by execution" if entry.kind == Target.EXECUTIONS and entry.target else ""
        named = f"{entry.kind}{by} {entry.target}".rstrip()
        if not entry.target.isdecimal():
            return named
        model = MODELS.get(entry.kind, f"harbor_executions_{entry.kind}")
        try:
            url = admin_url(f"{model}_change", entry.target)
        except NoReverseMatch:  # a kind, or a project, without that screen
            return named
        return link(url, named)

    when = column("at", "When")
    how_many = column("count", "Rows", lambda count: NOTHING if count is None else f"{count:,}")
    shown_outcome = column("outcome", "Outcome", lambda one: label(one.capitalize(), COLOURS[one]))


@page(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    list_display = ("name", "hint", "state", "scopes", "created", "expires", "last_used")
    fields = ("name", "may_read", "may_report", "may_manage", "expires_at")
    search_fields = ("name__icontains",)
    search_help_text = "Name"
    actions = ("revoke",)

    has_add_permission = may("harbor_executions.add_apitoken")

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        token = api_tokens.fill(obj, created_by=request.user.get_username())
        super().save_model(request, obj, form, change)
        note(person_of(request), Word.CREATE, Target.TOKEN, obj.pk, detail=f"{obj.name}: {self.scopes(obj)}")
        obj.__dict__["token"] = token

    def response_add(self, request: HttpRequest, obj: ApiToken, post_url_continue: Any = None) -> HttpResponse:
        return self.own_page(
            request,
            "executions/admin/token_made.html",
            f"The token of {obj.name}",
            once="This is the only time that the token is shown. Copy it to where its program reads its secrets.",
            value=obj.__dict__["token"],
            page=admin_url("harbor_executions_apitoken_changelist"),
            page_title="All API tokens",
        )

    @asks_first(
        "Revoke",
        "Revoke {}",
        "Requests with it are answered with 401 from now on. It cannot be undone.",
        is_deletion=True,
    )
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        for token in queryset:
            with noted(person_of(request), Word.REVOKE, Target.TOKEN, token.pk) as entry:
                entry.detail, entry.skip = token.name, not api_tokens.revoke(token.pk)
            if not entry.skip:
                messages.success(request, f"{token.name} is revoked: requests with it are answered with 401.")
            else:
                messages.warning(request, f"{token.name} was revoked before.")

    @admin.display(description="State")
    def state(self, token: ApiToken) -> SafeString:
        if token.revoked_at:
            return label("Revoked", "danger")
        if token.expires_at and token.expires_at <= timezone.now():
            return label("Expired", "warning")
        return label("Valid", "success")

    @admin.display(description="May")
    def scopes(self, token: ApiToken) -> str:
        return ", ".join(name for name in ("read", "report", "manage") if getattr(token, f"may_{name}"))

    created = column("created_at", "Created")
    expires = column("expires_at", "Expires")
    last_used = column("last_used_at", "Last used")
