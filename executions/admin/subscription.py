"""The screens of subscriptions (make, change, test and delete webhooks; see handlers) and of their deliveries."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from harbor_refresh.executions.admin.base import asks_first, may
from harbor_refresh.executions.admin.formatters import (
    NOTHING,
    column,
    label,
    link,
    list_url,
    moment,
)
from harbor_refresh.executions.admin.lists import ReadOnlyAdmin
from harbor_refresh.executions.admin.site_pages import admin_url, page
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import Delivery, Subscription
from harbor_refresh.executions.models.notifications import Kind, State
from harbor_refresh.executions.news.audit import Outcome, Target, Word, noted, person_of
from harbor_refresh.executions.news.deliveries import addresses, claims, subscriptions
from harbor_refresh.executions.news.deliveries.subscriptions import (
    FIELDS,
    MAX_OLD_SECRET_SECONDS,
    OLD_SECRET_SECONDS,
)
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import plural

COLOURS: dict[str, str] = {State.PENDING: "info", State.DELIVERED: "success", State.DEAD: "danger"}
MAX_TESTED = 5
#: How long the old secret signs after a rotation, as the screen offers it.
OLD_SECRET_CHOICES = (
    (0, "no longer: it is in wrong hands"),
    (3_600, "for an hour"),
    (OLD_SECRET_SECONDS, "for a day"),
    (MAX_OLD_SECRET_SECONDS, "for a week"),
)


class SubscriptionForm(forms.ModelForm):  # type: ignore[type-arg]
    statuses = forms.MultipleChoiceField(
        choices=Status.choices, required=False, widget=forms.CheckboxSelectMultiple, help_text="None: all of them."
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name in self.fields.keys() & {"vendor_types", "triggers"}:
            if "," in "".join(getattr(self.instance, name)):
                self.fields[name].disabled = True
                self.fields[name].help_text = "A word holds a comma: change it over the API."

    class Meta:
        model = Subscription
        fields = FIELDS
        help_texts = {  # noqa: RUF012
            "vendor_types": "Separated by commas. Empty: all.",
            "triggers": "Separated by commas. Empty: all.",
            "url": "http or https, at a public address; or only in REFRESH_DELIVER_NETWORKS, if that is set (in a "
            "project: DELIVER_NETWORKS of HARBOR_REFRESH).",
        }

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if not self.errors:
            try:
                subscriptions.refuse_unusable(Subscription(**values), was=self.instance.name)
            except Refused as exc:
                raise ValidationError(str(exc)) from exc
        return values


class RotationForm(forms.Form):
    old_secret_seconds = forms.TypedChoiceField(
        label="The old secret signs as well", choices=OLD_SECRET_CHOICES, coerce=int, initial=OLD_SECRET_SECONDS
    )


@page(Subscription)
class SubscriptionAdmin(ReadOnlyAdmin):
    form = SubscriptionForm
    list_display = ("name", "kind", "target", "chooses", "state", "since")
    fields = (("state", "waits_until"), "since", "last_error", *FIELDS, "secrets")
    readonly_fields = ("target", "secrets", "state", "since", "waits_until", "last_error")
    search_fields = ("name__icontains",)
    search_help_text = "Name"
    ordering = ("name",)
    actions = ("send_test", "delete_chosen")
    page_actions = ("send_test", "rotate")

    has_add_permission = may("harbor_executions.add_subscription")
    has_remove_permission = may("harbor_executions.delete_subscription")

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        is_function = isinstance(obj, Subscription) and obj.kind != Kind.WEBHOOK
        return not is_function and request.user.has_perm("harbor_executions.change_subscription")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Show the receiver instead of the whole address to users who may not change it."""
        if obj is None:
            return FIELDS
        left_out = () if request.user.has_perm("harbor_executions.view_delivery") else ("last_error",)
        url = "url" if self.has_change_permission(request, obj) else "target"
        return [url if name == "url" else name for name in self.fields if name not in left_out]

    def changeform_view(self, request: HttpRequest, *args: Any, **options: Any) -> Any:
        try:
            return super().changeform_view(request, *args, **options)
        except Refused as exc:  # another request came between the check of the form and the save
            messages.error(request, f"The webhook is not saved: {exc}.")
            return HttpResponseRedirect(self._page("changelist"))

    def save_model(self, request: HttpRequest, obj: Subscription, form: Any, change: bool) -> None:
        fields = form.cleaned_data
        verb = Word.CHANGE if change else Word.CREATE
        with noted(person_of(request), verb, Target.SUBSCRIPTION) as entry:
            made = subscriptions.change(obj.pk, **fields) if change else subscriptions.create(**fields)
            entry.target, entry.detail = made.pk, made.name
        obj.pk, obj.secret = made.pk, made.secret

    def response_add(self, request: HttpRequest, obj: Subscription, post_url_continue: Any = None) -> HttpResponse:
        return self._secret(request, obj, "Requests are signed with it as Standard Webhooks has it.")

    def _secret(self, request: HttpRequest, row: Subscription, use: str | SafeString) -> HttpResponse:
        """Show the secret in the only answer that holds it. A message would be stored in a cookie."""
        return self.own_page(
            request,
            "executions/admin/shown_once.html",
            f"The secret of {row.name}",
            once="This is the only time that the secret is shown. Copy it to where the receiver reads secrets.",
            value=row.secret,
            use=use,
            page=admin_url("harbor_executions_subscription_change", row.pk),
            page_title="I have copied it",
        )

    def useful(self, request: HttpRequest, row: Subscription) -> dict[str, bool]:
        return dict.fromkeys(self.page_actions, row.kind == Kind.WEBHOOK)

    @asks_first(
        "Rotate the secret",
        "Rotate the secret of {}",
        "Makes a new secret, which is shown once. Until its time is over, the old one signs as well, so that "
        "the receiver refuses nothing before it has the new one.",
        form=RotationForm,
    )
    def rotate(
        self, request: HttpRequest, queryset: QuerySet[Subscription], form: RotationForm
    ) -> HttpResponse | None:
        seconds = form.cleaned_data["old_secret_seconds"]
        chosen = queryset.get()
        try:
            with noted(person_of(request), Word.ROTATE, Target.SUBSCRIPTION, chosen.pk) as entry:
                row = subscriptions.rotate(chosen.pk, seconds)
                entry.detail = subscriptions.in_words(row)
        except Refused as exc:
            messages.error(request, f"The secret is not rotated: {exc}.")
            return None
        old = "Until {} requests carry a signature by the old secret, too. From then on the new one signs alone."
        until = row.old_secret_until
        use = format_html(old, moment(until)) if until else "The new secret signs alone from now on."
        return self._secret(request, row, use)

    @asks_first("Send a test", "Send a test to {}", "Sends a signed request at once, and shows the answer.")
    def send_test(self, request: HttpRequest, queryset: QuerySet[Subscription]) -> None:
        chosen = list(queryset.filter(kind=Kind.WEBHOOK)[: MAX_TESTED + 1])
        if not chosen or len(chosen) > MAX_TESTED:
            messages.error(request, f"Nothing was sent: choose 1 to {MAX_TESTED} webhooks.")
            return
        for row in chosen:
            answer = subscriptions.test(row)
            with noted(person_of(request), Word.TEST, Target.SUBSCRIPTION, row.pk) as entry:
                entry.outcome = Outcome.DONE if answer.is_good else Outcome.FAILED
            if answer.is_good:
                messages.success(request, f"{row.name} answered {answer.status}.")
            else:
                messages.error(request, f"{row.name}: {answer.error}")

    @asks_first(
        "Delete with all deliveries",
        "Delete {}",
        "Its receiver gets no more changes. Its deliveries and dead letters are deleted with it, for good.",
        permission="remove",
        is_deletion=True,
    )
    def delete_chosen(self, request: HttpRequest, queryset: QuerySet[Subscription]) -> None:
        for row in queryset:
            try:
                with noted(person_of(request), Word.DELETE, Target.SUBSCRIPTION, row.pk) as entry:
                    subscriptions.delete(row.pk)
                    entry.detail = row.name
            except Refused as exc:
                messages.error(request, f"{row.name} is not deleted: {exc}.")
                continue
            messages.success(request, f"{row.name} is deleted.")

    @admin.display(description="Told of")
    def chooses(self, row: Subscription) -> str:
        words = (", ".join(words) for words in (row.vendor_types, row.statuses, row.triggers))
        return " · ".join(text for text in words if text) or "everything"

    @admin.display(description="Signed with")
    def secrets(self, row: Subscription) -> str | SafeString:
        if row.kind != Kind.WEBHOOK:
            return NOTHING
        until = row.old_secret_until
        return format_html("2 secrets until {}", moment(until)) if until else "its secret"

    @admin.display(description="State")
    def state(self, row: Subscription) -> SafeString:
        if not row.enabled:
            return label("Disabled", "default")
        if row.missing_since:
            return label("No code", "danger", title="No worker has the code of this handler.")
        if row.failures:
            waits = row.retry_at and row.retry_at > timezone.now()
            return label("Waits" if waits else "Failing", "danger", title=f"{row.failures:,} failures in a row")
        return label("Works", "success")

    @admin.display(description="Last error")
    def last_error(self, row: Subscription) -> str | SafeString:
        """That of a delivery which is tried again, or else of the last dead letter. What was tried last is due
        last. All that wait are read, 100,000 in about 30 ms."""
        of_it = Delivery.objects.filter(subscription=row).exclude(last_error="")
        tried = of_it.filter(state=State.PENDING, attempts__gt=0).order_by("-next_at").first()
        one = tried or of_it.filter(state=State.DEAD).order_by("-pk").first()
        error = one.last_error if one else NOTHING
        return link(list_url("executions_delivery", subscription__id__exact=row.pk), error)

    target = column(lambda row: addresses.origin(row.url) or row.handler, "Receiver")
    since = column("failing_since", "Failing since")
    waits_until = column(lambda row: moment(row.retry_at if row.failures else None), "Waits until")


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

    def matching(self, rows: QuerySet[Delivery], text: str) -> QuerySet[Delivery]:
        return super().matching(claims.by_subscription(rows) if text.strip() else rows, text)

    @admin.action(description="Send again", permissions=["act"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        count = 0
        for row in queryset:
            with noted(person_of(request), Word.RESEND, Target.DELIVERY, row.pk) as entry:
                entry.skip = not claims.resend(Delivery.objects.filter(pk=row.pk))
                count += not entry.skip
        if count:
            messages.success(request, f"{_letters(count)} sent again.")
        if others := len(queryset) - count:
            left = plural(others, "delivery was no dead letter", "deliveries were no dead letters")
            messages.warning(request, f"{left}, so left alone.")

    @admin.action(description="Send all dead letters of these subscriptions again", permissions=["act"])
    def send_all_again(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        count = 0
        for pk in queryset.order_by().values_list("subscription_id", flat=True).distinct():
            with noted(person_of(request), Word.RESEND, Target.DELIVERY, f"of subscription {pk}") as entry:
                entry.count = claims.resend(Delivery.objects.filter(subscription_id=pk))
            count += entry.count
        more = " There may be more." if count >= claims.MOST else ""
        messages.success(request, f"{_letters(count)} sent again.{more}")

    shown_state = column("state", "State", lambda one: label(State(one).label, COLOURS[one]))
    changed = column("changed_at", "Changed")
    made = column("created_at", "Listed")
    next_try = column("next_at", "Next try")
    ended = column("ended_at", "Ended")


def _letters(count: int) -> str:
    return plural(count, "dead letter is", "dead letters are")
