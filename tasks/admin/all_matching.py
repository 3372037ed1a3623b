"""Translate the address of a list of executions into the filter of an action on all that match.

The list chooses by the parameters of its address, and an action by a `Filter`. A parameter that has no exact
translation is refused, because an action must never choose an execution that the list would not. Some lists show
only the newest executions that match; the action is on all of them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django.http import QueryDict
from django.utils.text import smart_split

from harbor_refresh.executions.admin.filters import StartedFilter, started_between
from harbor_refresh.executions.admin.search import executions_named, unquoted, vendors
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.lifecycle.vendor_keys import key_of
from harbor_refresh.executions.queries.filters import MAX_IDS, Filter

#: Parameters that choose no rows: the page, the order, and what Django adds.
OF_THE_VIEW = frozenset({"p", "o", "all", "e", "_changelist_filters"})
STARTED = {"gte": "started_after", "lt": "started_before"}


def all_matching(query: QueryDict) -> Filter:
    """Return the filter that chooses what the list with these parameters does, on all its pages. Raises Refused if
    there is none."""
    given = {name: values[-1].strip() for name, values in query.lists() if name not in OF_THE_VIEW}
    between = started_between({name: given.pop(name, "") for name in StartedFilter.names})
    fields: dict[str, Any] = {STARTED[bound]: at for bound, at in between.items()}
    for name, value in given.items():
        if not value:
            continue
        if name not in PARAMETERS or len(query.getlist(name)) > 1:
            raise Refused(f"the list is narrowed by `{name[:40]}`, which an action cannot do")
        found = PARAMETERS[name](value)
        if twice := set(found) & set(fields):
            raise Refused(f"the list is narrowed by {' and '.join(sorted(twice))} twice; leave one out")
        fields |= found
    return Filter(**fields)


def _searched(text: str) -> Mapping[str, Any]:
    """One word of the search as a filter: `path=value`, ids of executions, jobs or objects, or a vendor."""
    words = list(smart_split(text))
    if len(words) != 1:
        raise Refused("an action can search for one word only; use the filters instead")
    path, is_attribute, value = words[0].partition("=")
    if is_attribute and path:
        return {"attributes": {path: unquoted(value)}}
    ids = executions_named(words[0])
    named = [vendor for vendor in vendors() if words[0].lower() in vendor.lower()]
    if len(ids) > MAX_IDS or len(named) > 1 or (ids and named):
        raise Refused("the search finds several vendors, or too many ids; use the filters")
    if named:
        return {"vendor_type": named[0]}
    if not ids:
        raise Refused("the search finds no execution")
    return {"ids": sorted(ids)}


def _vendor_id(value: str) -> Mapping[str, Any]:
    return {"vendor_id": key_of(value)}


def _yes(name: str) -> Callable[[str], Mapping[str, Any]]:
    def read(value: str) -> Mapping[str, Any]:
        if value != "yes":
            raise Refused(f"`{name}` takes yes")
        return {name: True}

    return read


PARAMETERS: Mapping[str, Callable[[str], Mapping[str, Any]]] = {
    "q": _searched,
    "vendor": lambda value: {"vendor_type": value},
    "vendor_id": _vendor_id,
    "status__exact": lambda value: {"statuses": (value,)},
    "trigger": lambda value: {"trigger": value},
    "quarantined": _yes("quarantined"),
    "has_jobs": _yes("has_jobs"),
}
