"""The names that the screens import from django-unfold, with the intended types.

Unfold does not annotate the options of its classes, and types guessed from their defaults forbid values that its
manual recommends. So a type checker sees Django's own classes here, and the options we use.

In a project without unfold the same names are those of `executions/admin/plain`, which gives the options their
meaning on the pages of Django's own admin.
"""

from typing import TYPE_CHECKING, Any, ClassVar

from django.apps import apps
from django.contrib.admin.options import IncorrectLookupParameters
from django.http import HttpRequest

from harbor_refresh.executions.admin.site_pages import on_its_site
from harbor_refresh.executions.page_look import has_unfold, media

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django import forms
    from django.contrib import admin
    from django.contrib.admin.views.main import ChangeList as _ChangeList
    from django.core.paginator import Page, Paginator
    from django.forms.models import BaseInlineFormSet

    class _ModelAdmin(admin.ModelAdmin[Any]):
        actions_detail: Sequence[str]
        list_before_template: str
        list_disable_select_all: bool
        list_fullwidth: bool
        list_filter_submit: bool
        change_form_outer_before_template: str
        change_form_outer_after_template: str

        def get_actions_detail(self, request: Any, object_id: Any) -> list[Any]: ...

    class PaginationInlineFormSet(BaseInlineFormSet[Any, Any, Any]):
        request: HttpRequest

        def get_pagination_key(self) -> str: ...
        def get_page(self, paginator: Paginator[Any], page: int) -> Page[Any]: ...

    class TabularInline(admin.TabularInline[Any, Any]):
        hide_title: bool
        per_page: int
        tab: bool

    Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

    class RangeDateTimeFilter(admin.FieldListFilter):
        title: str

    class TextFilter(admin.SimpleListFilter): ...

    class DialogForm(forms.Form): ...

    class SelectWidget(forms.Select): ...

    class TextInputWidget(forms.TextInput): ...

    def action(**options: Any) -> Decorator: ...
    def display(**options: Any) -> Decorator: ...

elif has_unfold():
    from unfold.admin import ModelAdmin as _ModelAdmin
    from unfold.admin import TabularInline
    from unfold.decorators import action, display
    from unfold.forms import BaseDialogForm as DialogForm
    from unfold.forms import PaginationInlineFormSet
    from unfold.views import ChangeList as _ChangeList
    from unfold.widgets import UnfoldAdminSelectWidget as SelectWidget
    from unfold.widgets import UnfoldAdminTextInputWidget as TextInputWidget
else:
    from django.contrib.admin import display
    from django.contrib.admin.views.main import ChangeList as _ChangeList
    from django.contrib.admin.widgets import AdminTextInputWidget as TextInputWidget
    from django.forms import Select as SelectWidget

    from harbor_refresh.executions.admin.plain.dialogs import DialogForm, action
    from harbor_refresh.executions.admin.plain.inlines import PaginationInlineFormSet, TabularInline
    from harbor_refresh.executions.admin.plain.model_admin import ModelAdmin as _ModelAdmin


if not TYPE_CHECKING:  # the filters of unfold are an app of their own
    if apps.is_installed("unfold.contrib.filters"):
        from unfold.contrib.filters.admin import RangeDateTimeFilter, TextFilter
    else:
        from harbor_refresh.executions.admin.plain.filters import RangeDateTimeFilter, TextFilter


class ChangeList(_ChangeList):
    """A list that only the filters and the links of its page narrow. Django takes each column with each operator,
    such as a regular expression that keeps PostgreSQL busy for minutes."""

    def get_filters(self, request: HttpRequest) -> Any:
        found = super().get_filters(request)
        if undeclared := set(found[2]).difference(getattr(self.model_admin, "lookups_of_links", ())):
            raise IncorrectLookupParameters(f"the page has no filter {min(undeclared)}")
        return found


class ModelAdmin(_ModelAdmin):
    """The base of our screens, on whichever site they are."""

    #: The lookups by which links narrow the list, beside those of `list_filter`.
    lookups_of_links: ClassVar[tuple[str, ...]] = ()

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[_ChangeList]:
        return ChangeList

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return True  # the list refuses what no filter has taken

    @property
    def media(self) -> Any:
        return super().media + media()

    @property
    def urls(self) -> Any:
        return on_its_site(self.get_urls(), self.admin_site)


__all__ = [
    "ChangeList",
    "DialogForm",
    "ModelAdmin",
    "PaginationInlineFormSet",
    "RangeDateTimeFilter",
    "SelectWidget",
    "TabularInline",
    "TextFilter",
    "TextInputWidget",
    "action",
    "display",
]
