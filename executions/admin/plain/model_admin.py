"""Django's ModelAdmin with those options of unfold's that our screens use."""

from functools import update_wrapper
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest
from django.urls import URLPattern, path, reverse

from harbor_refresh.executions.admin.plain.dialogs import PageAction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class ModelAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    actions_detail: "Sequence[str]" = ()
    list_before_template = ""
    list_disable_select_all = False
    list_fullwidth = False
    list_filter_submit = False
    change_form_before_template = ""
    change_form_outer_before_template = ""
    change_form_outer_after_template = ""
    change_form_template = "executions/admin/plain/change_form.html"
    change_list_template: ClassVar[str] = "executions/admin/plain/change_list.html"

    @property
    def actions_selection_counter(self) -> bool:  # type: ignore[override]
        """Django offers `select all` beside its counter."""
        return not self.list_disable_select_all

    def get_urls(self) -> list[URLPattern]:
        def wrapped(view: "Callable[..., Any]") -> "Callable[..., Any]":
            def answer(*args: Any, **options: Any) -> Any:
                return self.admin_site.admin_view(view)(*args, **options)

            return update_wrapper(answer, view)

        of_actions = [
            path(f"<path:object_id>/{one.path}/", wrapped(one.method), name=one.name)
            for one in self._page_actions()
        ]
        return [*of_actions, *super().get_urls()]

    def _page_actions(self) -> list[PageAction]:
        return [self._page_action(name) for name in self.actions_detail]

    def _page_action(self, name: str) -> PageAction:
        method = getattr(self, name)
        return PageAction(
            title=method.short_description,
            path=method.url_path,
            name=f"{self.opts.app_label}_{self.opts.model_name}_{name}",
            method=method,
            permissions=method.allowed_permissions,
        )

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        return [one for one in self._page_actions() if one.is_allowed(self, request, object_id)]

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        shown = self.get_actions_detail(request, object_id) if object_id else []
        links = [
            (one.title, reverse(f"admin:{one.name}", args=[object_id], current_app=self.admin_site.name))
            for one in shown
        ]
        return super().changeform_view(
            request, object_id, form_url, {**(extra_context or {}), "page_actions": links, "screen": self}
        )

    def get_formset_kwargs(self, request: HttpRequest, obj: Any, inline: Any, prefix: str) -> dict[str, Any]:
        given: dict[str, Any] = super().get_formset_kwargs(request, obj, inline, prefix)
        if per_page := getattr(inline, "per_page", 0):
            given |= {"request": request, "per_page": per_page}
        return given
