"""The screen of API tokens: make one, see when it was last used, revoke it."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.safestring import SafeString

from harbor_refresh.executions.access import api_tokens
from harbor_refresh.executions.access.audit import Kind, Word, note, noted, person_of
from harbor_refresh.executions.admin.base import ReadOnlyAdmin, may
from harbor_refresh.executions.admin.confirmation import Question, asks_first
from harbor_refresh.executions.admin.formatters import column, label
from harbor_refresh.executions.admin.site_pages import admin_url, page
from harbor_refresh.executions.models import ApiToken


@page(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    list_display = ("name", "hint", "state", "scopes", "created", "expires", "last_used")
    fields = ("name", "may_read", "may_report", "may_manage", "expires_at")
    search_fields = ("name__icontains",)
    search_help_text = "Name"
    actions = ("revoke",)

    has_add_permission = may("harbor_executions.add_apitoken")
    has_revoke_permission = may("harbor_executions.change_apitoken")

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        token = api_tokens.fill(obj, created_by=request.user.get_username())
        super().save_model(request, obj, form, change)
        note(person_of(request), Word.CREATE, Kind.TOKEN, obj.pk, detail=f"{obj.name}: {self.scopes(obj)}")
        obj.__dict__["token"] = token

    def response_add(self, request: HttpRequest, obj: ApiToken, post_url_continue: Any = None) -> HttpResponse:
        return self.shown_once(
            request,
            f"The token of {obj.name}",
            "executions/admin/token_made.html",
            once="This is the only time that the token is shown. Copy it to where its program reads its secrets.",
            value=obj.__dict__["token"],
            page=admin_url("harbor_executions_apitoken_changelist"),
            page_title="All API tokens",
        )

    @admin.action(description="Revoke", permissions=["revoke"])
    @asks_first(
        Question(
            "Revoke {}",
            "Requests with it are answered with 401 from now on. It cannot be undone.",
            is_deletion=True,
        )
    )
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        for token in queryset:
            with noted(person_of(request), Word.REVOKE, Kind.TOKEN, token.pk) as entry:
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
