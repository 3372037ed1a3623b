"""Filters with fields, which Django's admin does not have: a text, and two moments."""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.http import HttpRequest


def others(changelist: Any, own: list[str]) -> list[tuple[str, str]]:
    """What the list is narrowed by besides: the form of a filter sends it again."""
    params = changelist.filter_params
    return [(name, one) for name, values in params.items() if name not in own for one in values]


class TextFilter(admin.SimpleListFilter):
    template = "executions/admin/plain/text_filter.html"

    def has_output(self) -> bool:
        return True

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return []

    def choices(self, changelist: Any) -> Iterator[Any]:
        name = str(self.parameter_name)
        fields = [{"name": name, "type": "text", "value": self.value() or "", "label": self.title}]
        yield {"fields": fields, "others": others(changelist, [name])}


class RangeDateTimeFilter(admin.FieldListFilter):
    template = "executions/admin/plain/text_filter.html"

    def expected_parameters(self) -> list[str | None]:
        return [f"{self.field_path}_{side}_{part}" for side in ("from", "to") for part in (0, 1)]

    def choices(self, changelist: Any) -> Iterator[Any]:
        names = [str(name) for name in self.expected_parameters()]
        fields = [
            {
                "name": name,
                "type": "time" if name.endswith("1") else "date",
                "value": self._last(self.used_parameters.get(name)),
                "label": f"{'from' if '_from_' in name else 'to'}, {'time' if name.endswith('1') else 'date'}",
            }
            for name in names
        ]
        yield {"fields": fields, "others": others(changelist, names)}

    @staticmethod
    def _last(value: Any) -> str:
        return str((value[-1] if isinstance(value, list) and value else value) or "")
