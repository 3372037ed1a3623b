"""Rows below the page of another row, a page of them at a time."""

from typing import Any

from django.contrib import admin
from django.core.paginator import Page, Paginator
from django.forms.models import BaseInlineFormSet
from django.http import HttpRequest


class PaginationInlineFormSet(BaseInlineFormSet):  # type: ignore[type-arg]
    def __init__(self, *args: Any, request: HttpRequest, per_page: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self.request = request
        self.page = self.get_page(Paginator(self.get_queryset(), per_page), self.get_page_num())
        self._queryset = self.page.object_list

    def get_pagination_key(self) -> str:
        return f"{self.prefix}-page"

    def get_page_num(self) -> int:
        raise NotImplementedError

    def get_page(self, paginator: "Paginator[Any]", page: int) -> "Page[Any]":
        return paginator.page(page if page <= paginator.num_pages else 1)


class TabularInline(admin.TabularInline):  # type: ignore[type-arg]
    template = "executions/admin/plain/tabular.html"
    hide_title = False
    per_page = 0
    tab = False
