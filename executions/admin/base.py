"""The base of all pages: Django's ModelAdmin, with lists that only their filters narrow, and with actions that ask
first, on a page: those on rows of a list, on the page of a row, and the verbs of the queue.

The templates extend those of Django's admin. In a project whose admin has the templates of django-unfold, unfold's
ModelAdmin is the base and its look dresses the same pages. Only this module asks for unfold.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import LogEntry
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ORDER_VAR, ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from harbor_refresh.executions.admin.filters import parse_id
from harbor_refresh.executions.admin.site_pages import admin_url, on_its_site
from harbor_refresh.executions.attached.ownership import page_context
from harbor_refresh.executions.news.audit import Target, Word, note, person_of
from harbor_refresh.executions.text import plural, storable

_apps = [app.name for app in apps.get_app_configs()]
#: Whether the templates of the admin are unfold's: its app comes before the admin.
HAS_UNFOLD = "unfold" in _apps and _apps.index("unfold") < _apps.index("django.contrib.admin")

if TYPE_CHECKING:
    DjangosModelAdmin = admin.ModelAdmin[Any]
elif HAS_UNFOLD:
    from unfold.admin import ModelAdmin as DjangosModelAdmin
else:
    DjangosModelAdmin = admin.ModelAdmin


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

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
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
    #: The actions that the page of a row offers. Each asks first. Its queryset is that row.
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

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Find none by text that PostgreSQL cannot store, which Django would ask it for."""
        return super().get_object(request, object_id, from_field) if storable(object_id) else None

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


@dataclass(frozen=True)
class Question:
    """What a confirmation says. `title` begins with the word of the button, and has a place for the rows; `form`
    asks for more than yes or no."""

    title: str
    effect: str
    is_deletion: bool = False
    form: type[forms.Form] | None = None

    @property
    def submit(self) -> str:
        return self.title.split()[0]


def asks_first(
    description: str, title: str, effect: str, *, permission: str = "act", **more: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a method an action with this name in the list. It is carried out when its Question is answered, by the
    same request with `confirmed`. Nothing is done before. The method gets the form, if there is one."""
    question = Question(title, effect, **more)

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        @admin.action(description=description, permissions=[permission])
        @wraps(method)
        def act(screen: ModelAdmin, request: HttpRequest, queryset: Any) -> Any:
            confirmed = is_confirmed(request)
            form = question.form(request.POST if confirmed else None) if question.form else None
            if confirmed and (form is None or form.is_valid()):
                return method(screen, request, queryset, *([form] if form else []))
            return ask(screen, request, question, rows=[(row.pk, str(row)) for row in queryset], form=form)

        return act

    return decorate


def is_confirmed(request: HttpRequest) -> bool:
    return request.POST.get("confirmed") == "yes"


def ask(
    screen: ModelAdmin,
    request: HttpRequest,
    question: Question,
    *,
    rows: Sequence[tuple[int, Any]] = (),
    of: str = "",
    hidden: Sequence[tuple[str, Any]] = (),
    cancel: str = "",
    form: forms.Form | None = None,
    **context: Any,
) -> TemplateResponse:
    """Ask whether an action on these rows (id and name) is meant, or on `of`. `hidden` is sent again as well."""
    opts = screen.opts
    if "action" in request.POST:  # of the list
        of = of or plural(len(rows), str(opts.verbose_name), str(opts.verbose_name_plural))
        checked = [pk for pk, _ in rows] or request.POST.getlist(ACTION_CHECKBOX_NAME)[:1]
        across = "1" if request.POST.get("select_across") == "1" else "0"
        of_list = (("action", request.POST["action"]), ("index", "0"), ("select_across", across))
        hidden = [*of_list, *((ACTION_CHECKBOX_NAME, pk) for pk in checked), *hidden]
        context["number"] = of
        cancel = request.get_full_path()
    elif rows:
        of = f"{opts.verbose_name} {rows[0][0]}"
    return screen.own_page(
        request,
        "executions/admin/confirmation.html",
        f"{question.title.format(of)}?",
        question=question,
        rows=rows,
        opts_of_rows=opts,
        hidden=hidden,
        cancel=cancel or "../change/",
        form=form or (question.form() if question.form else None),
        **context,
    )
