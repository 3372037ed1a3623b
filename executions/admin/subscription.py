"""The screen of subscriptions: make, change, test and delete webhooks; see handlers."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.safestring import SafeString

from executions.admin.base import ReadOnlyAdmin
from executions.admin.formatters import label, moment
from executions.admin.unfold_api import display
from executions.deliveries import subscriptions
from executions.deliveries.subscriptions import Wish
from executions.errors import Refused
from executions.models import Subscription
from executions.models.subscription import Kind
from executions.status import Status

MAX_TESTED = 5


class SubscriptionForm(forms.ModelForm):  # type: ignore[type-arg]
    statuses = forms.MultipleChoiceField(
        choices=Status.choices,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="None: all of them.",
    )

    class Meta:
        model = Subscription
        fields = tuple(Wish.__dataclass_fields__)
        help_texts = {  # noqa: RUF012
            "vendor_types": "With commas between them. Empty: all.",
            "triggers": "With commas between them. Empty: all.",
            "url": "http or https, a public address or one that REFRESH_DELIVER_NETWORKS allows.",
        }

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if not self.errors:
            try:
                subscriptions.refuse_unusable(self.wish(values))
            except Refused as exc:
                raise ValidationError(str(exc)) from exc
        return values

    @staticmethod
    def wish(values: dict[str, Any]) -> Wish:
        return Wish(**{name: values[name] for name in Wish.__dataclass_fields__})


@admin.register(Subscription)
class SubscriptionAdmin(ReadOnlyAdmin):
    form = SubscriptionForm
    list_display = ("name", "kind", "target", "chooses", "state", "since")
    fields = tuple(Wish.__dataclass_fields__)
    search_fields = ("name",)
    search_help_text = "Name"
    ordering = ("name",)
    actions = ("send_test", "delete_chosen")

    def matching(self, rows: QuerySet[Subscription], text: str) -> QuerySet[Subscription]:
        return rows.filter(name__icontains=text)

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return request.user.has_perm("harbor_executions.add_subscription")

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        is_handler = isinstance(obj, Subscription) and obj.kind == Kind.HANDLER
        return not is_handler and request.user.has_perm("harbor_executions.change_subscription")

    def has_remove_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("harbor_executions.delete_subscription")

    def save_model(self, request: HttpRequest, obj: Subscription, form: Any, change: bool) -> None:
        wish = SubscriptionForm.wish(form.cleaned_data)
        if change:
            subscriptions.change(obj.pk, **wish.columns())
            return
        made = subscriptions.create(wish)
        obj.pk, obj.secret = made.pk, made.secret

    def response_add(self, request: HttpRequest, obj: Subscription, post_url_continue: Any = None) -> HttpResponse:
        """Show the secret in this answer, the only one that holds it. A message would be stored in a cookie."""
        context = {
            **self.admin_site.each_context(request),
            "title": f"The secret of {obj.name}",
            "secret": obj.secret,
            "opts": self.opts,
        }
        return TemplateResponse(
            request, "executions/admin/secret_made.html", context, headers={"Cache-Control": "no-store"}
        )

    @admin.action(description="Send a test", permissions=["change"])
    def send_test(self, request: HttpRequest, queryset: QuerySet[Subscription]) -> None:
        chosen = list(queryset.filter(kind=Kind.WEBHOOK)[: MAX_TESTED + 1])
        if not chosen or len(chosen) > MAX_TESTED:
            messages.error(request, f"Nothing was sent: choose 1 to {MAX_TESTED} webhooks.")
            return
        for row in chosen:
            answer = subscriptions.test(row.pk)
            if answer.is_good:
                messages.success(request, f"{row.name} answered {answer.status}.")
            else:
                messages.error(request, f"{row.name}: {answer.error}")

    @admin.action(description="Delete with all deliveries", permissions=["remove"])
    def delete_chosen(self, request: HttpRequest, queryset: QuerySet[Subscription]) -> None:
        for row in queryset:
            subscriptions.delete(row.pk)
            messages.success(request, f"{row.name} is deleted.")

    @display(description="Receiver")
    def target(self, row: Subscription) -> str:
        return row.url or row.handler

    @display(description="Told of")
    def chooses(self, row: Subscription) -> str:
        words = (", ".join(words) for words in (row.vendor_types, row.statuses, row.triggers))
        return " · ".join(text for text in words if text) or "everything"

    @display(description="State")
    def state(self, row: Subscription) -> SafeString:
        if not row.enabled:
            return label("Disabled", "default")
        if row.missing_since:
            return label("No code", "danger", title="No worker has the code of this handler.")
        if row.failures:
            waits = row.retry_at and row.retry_at > timezone.now()
            return label("Waits" if waits else "Failing", "danger", title=f"{row.failures:,} failures in a row")
        return label("Works", "success")

    @display(description="Failing since")
    def since(self, row: Subscription) -> str | SafeString:
        return moment(row.failing_since)
