"""The names that the screens import from django-unfold, with the intended types.

Unfold does not annotate the options of its classes, and types guessed from their defaults forbid values that its
manual recommends. So a type checker sees Django's own classes here, and the options we use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django import forms
    from django.contrib import admin
    from django.contrib.admin.views.main import ChangeList
    from django.core.paginator import Page, Paginator
    from django.forms.models import BaseInlineFormSet
    from django.http import HttpRequest

    class ModelAdmin(admin.ModelAdmin[Any]):
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

    def action(**options: Any) -> Decorator: ...
    def display(**options: Any) -> Decorator: ...

else:
    from unfold.admin import ModelAdmin, TabularInline
    from unfold.contrib.filters.admin import RangeDateTimeFilter, TextFilter
    from unfold.decorators import action, display
    from unfold.forms import BaseDialogForm as DialogForm
    from unfold.forms import PaginationInlineFormSet
    from unfold.views import ChangeList
    from unfold.widgets import UnfoldAdminSelectWidget as SelectWidget

__all__ = [
    "ChangeList",
    "DialogForm",
    "ModelAdmin",
    "PaginationInlineFormSet",
    "RangeDateTimeFilter",
    "SelectWidget",
    "TabularInline",
    "TextFilter",
    "action",
    "display",
]
