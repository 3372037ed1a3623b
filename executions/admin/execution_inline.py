"""The latest executions of an object of the project, on the page of that object in the project's admin.

No relation leads from an execution to a model of the project; they have the id of the object in common, which may
be a number, a UUID or text. So this inline has no forms. It asks four queries, and a page is saved as without it.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib.admin.checks import BaseModelAdminChecks
from django.contrib.admin.options import InlineModelAdmin
from django.core.checks import CheckMessage, Error
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from harbor_refresh.executions.admin.base import never, parts_media
from harbor_refresh.executions.admin.formatters import elapsed, moment, status_bar, status_label, table
from harbor_refresh.executions.admin.lists import MORE_TASKS, with_task_counts
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.lifecycle.vendor_keys import Given, key_of, lookups
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.status import MAX_VENDOR, is_final
from harbor_refresh.executions.text import is_text

ROWS = 10


class ExecutionInlineChecks(BaseModelAdminChecks):
    """Those of an inline ask for a foreign key to the model of the page, and for the forms of a formset."""

    def check(self, admin_obj: Any, **kwargs: object) -> list[CheckMessage]:
        found: list[CheckMessage] = list(super().check(admin_obj, **kwargs))
        if is_text(admin_obj.vendor_type, MAX_VENDOR, at_least=1):
            return found
        what = "The inline does not say which executions it shows."
        hint = 'Write `vendor_type = "UPGRADE"`, the name that is given to start().'
        return [*found, Error(what, hint=hint, obj=type(admin_obj), id="harbor_executions.E003")]


class NoForms(forms.BaseFormSet):  # type: ignore[type-arg]
    """What Django asks of the formset of an inline when the page is shown, checked and saved. It is never bound,
    so nothing of a request reaches it."""

    new_objects = changed_objects = deleted_objects = ()

    def __init__(self, *, prefix: str, **_: Any) -> None:
        super().__init__(prefix=prefix)

    @classmethod
    def get_default_prefix(cls) -> str:
        return "executions"

    def is_valid(self) -> bool:
        return True

    def save(self) -> list[Any]:
        return []

    def get_queryset(self) -> tuple[()]:
        return ()


class ExecutionInline(InlineModelAdmin):  # type: ignore[type-arg]
    """An inline that shows the latest executions of an object on its page in the project's admin.

    Attributes:
        vendor_type: The vendor type of the executions. It must be set.
        tab: With unfold: whether the inline is a tab of the page.
    """

    model = Execution
    vendor_type = ""
    template = "executions/admin/execution_inline.html"
    checks_class = ExecutionInlineChecks
    verbose_name = "execution"
    verbose_name_plural = "executions"
    tab = False

    def vendor_id_of(self, obj: Any) -> Given:
        """Return the `vendor_id` of the executions of this object: by default its primary key."""
        key: Given = obj.pk
        return key

    @cached_property
    def shown(self) -> dict[str, Any]:
        """The newest executions, whether there are more, and the way to all of them. There are links if our pages
        are on the site of this one: another site may let in other people."""
        columns = ["Execution", "Status", "Tasks", "Started", "Ended", "Took"]
        title = capfirst(self.verbose_name_plural)
        try:
            key = key_of(self.vendor_id_of(self.obj))
        except Refused:  # no execution can have it
            return {"table": table(title, columns, [])}
        rows = Execution.objects.filter(vendor_type=self.vendor_type, **lookups(key)).order_by("-pk")
        found = list(rows[: ROWS + 1])
        query = urlencode({"vendor": self.vendor_type, "vendor_id": key})
        return {
            "table": table(title, columns, map(self._row, with_task_counts(found[:ROWS]))),
            "has_more": len(found) > ROWS,
            "all_url": f"{self._page('changelist')}?{query}" if self.has_registered_model and found else "",
        }

    def _row(self, one: Execution) -> list[Any]:
        address = self._page("change", one.pk) if self.has_registered_model else ""
        return [
            format_html('<a href="{}">{}</a>', address, one.pk) if address else one.pk,
            status_label(one.status),
            _progress(one.__dict__["task_counts"]),
            moment(one.start_time),
            moment(one.end_time),
            elapsed(one.start_time, one.end_time),
        ]

    def _page(self, name: str, *args: Any) -> str:
        address = f"admin:harbor_executions_execution_{name}"
        return reverse(address, args=args, current_app=self.admin_site.name)

    def get_formset(self, request: HttpRequest, obj: Any = None, **options: Any) -> Any:
        self.obj = obj  # Django makes an inline for each request
        return forms.formset_factory(forms.Form, formset=NoForms, extra=0)

    @property
    def media(self) -> forms.Media:
        return parts_media()

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """An object that is being added has no executions."""
        return obj is not None and super().has_view_permission(request, obj)

    has_add_permission = has_change_permission = has_delete_permission = never


def _progress(counts: Mapping[str, int] | None) -> SafeString | str:
    if not counts:
        return MORE_TASKS if counts is None else "none"
    total = sum(counts.values())
    ended = sum(count for status, count in counts.items() if is_final(status))
    return format_html(
        '<div style="min-width: 8rem">{}<span class="whitespace-nowrap">{} of {} ended</span></div>',
        status_bar(counts),
        f"{ended:,}",
        f"{total:,}",
    )
