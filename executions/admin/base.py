"""The base of all pages: Django's ModelAdmin, read-only, newest first, and as fast over 1,000,000 rows as over 10.

The templates extend those of Django's admin. In a project whose admin has the templates of django-unfold, unfold's
ModelAdmin is the base and its look dresses the same pages. Only this module asks for unfold.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.apps import apps
from django.contrib import admin
from django.contrib.admin import ShowFacets
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import LogEntry
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ERROR_FLAG, ORDER_VAR, ChangeList
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Model, Q, TextField
from django.db.models.functions import Cast, Left, Length
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from harbor_refresh.executions.access.audit import Target, Word, note, person_of
from harbor_refresh.executions.admin.filters import bounds, parse_id
from harbor_refresh.executions.admin.formatters import NOTHING, column, once
from harbor_refresh.executions.admin.site_pages import admin_url, on_its_site
from harbor_refresh.executions.attached.ownership import page_context
from harbor_refresh.executions.text import storable

if TYPE_CHECKING:
    from django.db.models import QuerySet


_apps = [app.name for app in apps.get_app_configs()]
#: Whether the templates of the admin are unfold's: its app comes before the admin.
HAS_UNFOLD = "unfold" in _apps and _apps.index("unfold") < _apps.index("django.contrib.admin")

if TYPE_CHECKING:
    DjangosModelAdmin = admin.ModelAdmin[Any]
elif HAS_UNFOLD:
    from unfold.admin import ModelAdmin as DjangosModelAdmin
else:
    DjangosModelAdmin = admin.ModelAdmin

#: Characters of the attributes that a page shows.
MAX_SHOWN = 10_000
#: Words of a search. The others are left out, because each makes the statement longer.
MAX_WORDS = 10


def parts_media() -> forms.Media:
    """The styles of tables, labels and bars, which change nothing else of a page of the project."""
    return forms.Media(css={"all": ["executions/parts.css"]})


def media() -> forms.Media:
    """The styles of our pages, and those that the look of the project lacks."""
    return parts_media() + forms.Media(css={"all": [f"executions/in-{'unfold' if HAS_UNFOLD else 'django'}.css"]})


def may(permission: str) -> Callable[..., bool]:
    """A method of a screen that says whether the user has this permission of Django's, for `has_…_permission`."""
    return lambda self, request, obj=None: request.user.has_perm(permission)


def never(self: Any, request: HttpRequest, obj: object = None) -> bool:
    """A permission that no user has on this screen."""
    return False


class DeclaredChangeList(ChangeList):
    """A list that only its filters and links narrow, by text that PostgreSQL can store. Django takes each column
    with each operator, such as a regular expression that keeps PostgreSQL busy for minutes."""

    def get_filters(self, request: HttpRequest) -> Any:
        found = super().get_filters(request)
        if undeclared := set(found[2]).difference(getattr(self.model_admin, "lookups_of_links", ())):
            raise IncorrectLookupParameters(f"the page has no filter {min(undeclared)}")
        if not all(storable(one) for _, values in request.GET.lists() for one in values):
            raise IncorrectLookupParameters("no row holds such text")
        return found

    def get_ordering(self, request: HttpRequest, queryset: "QuerySet[Any]") -> list[Any]:
        """Sort by columns of `sortable_by`, and by each once. Django alone sorts by any column."""
        columns = {str(place) for place, name in enumerate(self.list_display) if name in (self.sortable_by or ())}
        chosen = [one.removeprefix("-") for one in self.params.get(ORDER_VAR, "").split(".")]
        if not columns.issuperset(chosen) or len(set(chosen)) < len(chosen):
            self.params.pop(ORDER_VAR, None)
        return super().get_ordering(request, queryset)

    @property
    def pages(self) -> Iterator[int | str]:
        """The numbers of the pages, with a gap for most of them."""
        pages: Iterator[int | str] = self.paginator.get_elided_page_range(self.page_num)
        return pages


class ModelAdmin(DjangosModelAdmin):
    change_list_template: ClassVar[str | None] = "executions/admin/change_list.html"
    change_form_template: ClassVar[str | None] = "executions/admin/change_form.html"
    #: Templates above the list, above the form and below it.
    list_head = form_head = form_tail = ""
    #: The actions that the page of a row offers. Each asks first (confirmation.py). Its queryset is that row.
    page_actions: ClassVar[tuple[str, ...]] = ()
    #: The lookups by which links narrow the list, beside those of `list_filter`.
    lookups_of_links: ClassVar[tuple[str, ...]] = ()
    list_fullwidth = True  # in unfold
    changelist: ClassVar[type[ChangeList]] = DeclaredChangeList

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.act_on_row)
        own = [
            path(f"<path:object_id>/{one}/", view, {"name": one}, name=f"{self.url_name}_{one}")
            for one in self.page_actions
        ]
        return [*own, *super().get_urls()]

    def act_on_row(self, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
        """Run an action of the page of a row, and come back to that page, or to the list if the row is gone."""
        rows = self.get_queryset(request).filter(pk=parse_id(object_id))
        may_look = self.has_view_or_change_permission(request)
        if not may_look or name not in (allowed := self._allowed_page_actions(request)):
            raise PermissionDenied
        if not rows.exists():
            raise Http404(f"no row has the id {object_id!r}")
        answer: HttpResponse | None = allowed[name][0](self, request, rows)
        if answer is not None:
            return answer
        is_there = rows.all().exists()  # asked anew, because the action may have read the rows
        return HttpResponseRedirect(self._page("change", object_id) if is_there else self._page("changelist"))

    def may_follow(self, request: HttpRequest) -> bool:
        """Whether an open page of the user may be told what changes in it."""
        return self.admin_site.has_permission(request) and self.has_view_permission(request)

    @property
    def url_name(self) -> str:
        """How the names of the addresses of these pages begin."""
        return f"{self.opts.app_label}_{self.opts.model_name}"

    def _page(self, name: str, *args: Any) -> str:
        return admin_url(f"{self.url_name}_{name}", *args)

    def _allowed_page_actions(self, request: HttpRequest) -> dict[str, tuple[Any, str, str]]:
        found = [self.get_action(name) for name in self.page_actions]
        return {one[1]: one for one in self._filter_actions_by_permissions(request, found)}  # type: ignore[attr-defined]

    def useful(self, request: HttpRequest, row: Any) -> Mapping[str, bool]:
        """Whether an action would do something to this row; if not, its page leaves it out."""
        return {}

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **options: Any) -> Any:
        context |= page_context()
        if row := options.get("obj"):
            useful = self.useful(request, row)
            context["page_actions"] = [
                {"title": title, "address": self._page(name, row.pk)}
                for _, name, title in self._allowed_page_actions(request).values()
                if useful.get(name, True)
            ]
        return super().render_change_form(request, context, *args, **options)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return self.changelist

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return True  # the list refuses what no filter has taken

    def own_page(self, request: HttpRequest, template: str, title: str, **context: Any) -> TemplateResponse:
        """A page that is no list and no form."""
        context |= {**self.admin_site.each_context(request), "title": title, "look": media()}
        return TemplateResponse(request, template, context)

    @property
    def media(self) -> Any:
        return super().media + media()

    @property
    def urls(self) -> Any:
        return on_its_site(self.get_urls(), self.admin_site)


class NotedAdmin(ModelAdmin):
    """A screen whose changes are in the log of actions as well as in Django's own log. Django calls these methods
    in the transaction of the addition, the change or the deletion."""

    audit_kind: Target

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> LogEntry:
        return self._with_note(request, Word.CREATE, super().log_addition(request, obj, message))

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> LogEntry:
        return self._with_note(request, Word.CHANGE, super().log_change(request, obj, message))

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        for obj in queryset:
            note(person_of(request), Word.DELETE, self.audit_kind, obj.pk, detail=str(obj))
        return super().log_deletions(request, queryset)

    def _with_note(self, request: HttpRequest, verb: Word, entry: LogEntry) -> LogEntry:
        detail = f"{entry.object_repr}: {entry.get_change_message()}"
        note(person_of(request), verb, self.audit_kind, entry.object_id or "", detail=detail)
        return entry


class CappedPaginator(Paginator):  # type: ignore[type-arg]
    """A paginator that counts at most `MAX_ROWS` rows. Search and filters find the rows beyond."""

    MAX_ROWS = 10_000
    #: A filter has looked at a part of the rows only, so there may be more.
    is_bounded = False

    @cached_property
    def _counted(self) -> int:
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        return rows.order_by().values("pk")[: self.MAX_ROWS + 1].count()

    @cached_property
    def count(self) -> int:
        return min(self._counted, self.MAX_ROWS)

    @property
    def is_capped(self) -> bool:
        return self.is_bounded or self._counted > self.MAX_ROWS


class CappedChangeList(DeclaredChangeList):
    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.bounds = bounds(request)
        self.paginator.is_bounded = bool(self.bounds) and self.result_count > 0
        if not self.query and not self.has_active_filters:
            # without this, unfold offers "show all" on the page that shows all
            self.full_result_count = self.result_count


def _attributes(row: Any) -> str:
    """The beginning of the attributes of an execution or a task, as JSON."""
    json = Cast("extra_attrs", TextField())
    rows = type(row).objects.filter(pk=row.pk).values_list(Left(json, MAX_SHOWN), Length(json))
    begin, length = rows.first() or ("", 0)
    if (length or 0) <= MAX_SHOWN:
        return begin or NOTHING
    return f"{begin}… The first {MAX_SHOWN:,} of {length:,} characters are shown. The API answers with all."


class ReadOnlyAdmin(ModelAdmin):
    #: Columns that no page reads as a whole, because one value may take 2 MB.
    large: ClassVar[tuple[str, ...]] = ()
    changelist = CappedChangeList
    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER  # they count every row of every choice
    list_per_page = 50
    list_max_show_all = 0
    #: Whether the list offers to choose the rows of all pages.
    acts_on_all = False
    ordering: ClassVar[tuple[str, ...]] = ("-pk",)
    sortable_by: ClassVar[tuple[str, ...]] = ()

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Any]":
        return super().get_queryset(request).defer(*self.large)

    def get_search_results(
        self, request: HttpRequest, queryset: "QuerySet[Any]", search_term: str
    ) -> tuple["QuerySet[Any]", bool]:
        return (self.matching(queryset, search_term) if storable(search_term) else queryset.none()), False

    def matching(self, rows: "QuerySet[Any]", text: str) -> "QuerySet[Any]":
        """Return the rows that each word finds: by an id, or by a search field with a lookup (`name__exact`)."""
        for word in text.split()[:MAX_WORDS]:
            pk = parse_id(word) or -1  # which no row has
            lookups = ((name, word if "__" in name else pk) for name in self.search_fields)
            rows = rows.filter(Q(*lookups, _connector=Q.OR))
        return rows

    def response_action(self, request: HttpRequest, queryset: "QuerySet[Any]", *place: Any) -> HttpResponse | None:
        is_across = request.POST.get("select_across", "0") != "0"
        has_nonsense = any(parse_id(one) is None for one in request.POST.getlist(ACTION_CHECKBOX_NAME))
        if has_nonsense or (is_across and not self.acts_on_all):
            return HttpResponseRedirect(f"{request.path}?{ERROR_FLAG}=1")
        return super().response_action(request, queryset, *place)

    attributes = column(once("_attributes", _attributes), "Extra attrs")
    has_add_permission = has_change_permission = has_delete_permission = never
