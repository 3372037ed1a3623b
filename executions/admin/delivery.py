"""The screen of deliveries: what was told, what waits, and the dead letters, which can be sent again."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from harbor_refresh.executions.access.audit import Kind, Word, note, noted, person_of
from harbor_refresh.executions.admin.base import ReadOnlyAdmin, may
from harbor_refresh.executions.admin.formatters import column, delivery_label, execution_link, status_label
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.deliveries import claims
from harbor_refresh.executions.models import Delivery
from harbor_refresh.executions.text import plural


@page(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "subscription",
        "execution_number",
        "revision",
        "became",
        "shown_state",
        "attempts",
        "next_try",
        "last_error",
    )
    list_filter = ("state", "subscription")
    list_select_related = ("subscription",)
    fields = (
        ("subscription", "shown_state"),
        ("execution_number", "revision"),
        ("was", "became"),
        ("changed", "made"),
        ("attempts", "next_try", "ended"),
        "last_error",
    )
    search_fields = ("execution_id",)
    search_help_text = "Execution id"
    actions = ("send_again", "send_all_again")

    has_resend_permission = may("harbor_executions.change_delivery")

    @admin.action(description="Send again", permissions=["resend"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        count, others = 0, 0
        for row in queryset:
            with noted(person_of(request), Word.RESEND, Kind.DELIVERY, row.pk) as entry:
                entry.skip = not claims.resend([row.pk])
            count += not entry.skip
            others += entry.skip
        if count:
            self.message_user(request, f"{_letters(count)} sent again.", messages.SUCCESS)
        if others:
            left = plural(others, "delivery was no dead letter", "deliveries were no dead letters")
            self.message_user(request, f"{left}, so left alone.", messages.WARNING)

    @admin.action(description="Send all dead letters of these subscriptions again", permissions=["resend"])
    def send_all_again(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        ids = queryset.order_by().values_list("subscription_id", flat=True).distinct()
        count = 0
        for pk in ids:
            count += (sent := claims.resend_all(pk))
            note(person_of(request), Word.RESEND, Kind.DELIVERY, f"of subscription {pk}", count=sent)
        more = " There may be more." if count >= claims.MOST else ""
        self.message_user(request, f"{_letters(count)} sent again.{more}", messages.SUCCESS)

    execution_number = column("execution_id", "Execution", execution_link)
    was = column("from_status", "From", status_label)
    became = column("to_status", "To", status_label)
    shown_state = column("state", "State", delivery_label)
    changed = column("changed_at", "Changed")
    made = column("created_at", "Listed")
    next_try = column("next_at", "Next try")
    ended = column("ended_at", "Ended")


def _letters(count: int) -> str:
    return plural(count, "dead letter is", "dead letters are")
