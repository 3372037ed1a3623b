"""The graph of an execution, as a picture: which of its jobs need which. Of many jobs, those that are alike are
one box: they have one name, and need and are needed by jobs that are alike."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from django.template.loader import render_to_string
from django.utils.text import Truncator

from harbor_refresh.executions.admin.formatters import COLOURS
from harbor_refresh.executions.admin.site_pages import admin_url
from harbor_refresh.tasks.models.job import Job, Need

#: Larger graphs are not drawn. More jobs than FOLDED_FROM are folded.
MOST_NEEDS, MOST_BOXES, FOLDED_FROM = 20_000, 100, 30
WIDTH, HEIGHT, GAP, SPACE = 190, 46, 60, 14
MOST_TEXT = 26

Needs = Mapping[int, set[int]]


def drawn(execution_id: int) -> str:
    """Return the picture as HTML; nothing if no job needs another one."""
    rows = Need.objects.filter(job__task__execution_id=execution_id).values_list("job_id", "needed_id")
    pairs = list(rows[: MOST_NEEDS + 1])
    if not pairs:
        return ""
    context = _picture(pairs) if len(pairs) <= MOST_NEEDS else {}
    return render_to_string("tasks/admin/job_graph.html", context)


def _picture(pairs: list[tuple[int, int]]) -> dict[str, Any]:
    needs, needed_by = defaultdict[int, set[int]](set), defaultdict[int, set[int]](set)
    for job, needed in pairs:
        needs[job].add(needed)
        needed_by[needed].add(job)
    ids = sorted({*needs, *needed_by})  # what is needed has a lower id
    rows = Job.objects.filter(pk__in=ids).values_list("pk", "name", "task__status")
    names, statuses = {}, {}
    for pk, name, status in rows:
        names[pk], statuses[pk] = name, status
    kinds = _kinds(ids, names, needs, needed_by) if len(ids) > FOLDED_FROM else {pk: pk for pk in ids}
    members: dict[Hashable, list[int]] = defaultdict(list)
    layers: dict[Hashable, int] = {}
    columns: dict[int, list[Hashable]] = defaultdict(list)
    for pk in ids:
        kind = kinds[pk]
        if kind not in members:
            layers[kind] = max((layers[kinds[one]] + 1 for one in needs[pk]), default=0)
            columns[layers[kind]].append(kind)
        members[kind].append(pk)
    if len(members) > MOST_BOXES:
        return {}
    most = max(map(len, columns.values()))
    at = {
        kind: (layer * (WIDTH + GAP), place * (HEIGHT + SPACE) + (most - len(column)) * (HEIGHT + SPACE) // 2)
        for layer, column in columns.items()
        for place, kind in enumerate(column)
    }
    return {
        "width": len(columns) * (WIDTH + GAP) - GAP,
        "height": most * (HEIGHT + SPACE) - SPACE,
        "boxes": [
            _box(pks, names, Counter(statuses[pk] for pk in pks), at[kind]) for kind, pks in members.items()
        ],
        "lines": sorted({_line(at[kinds[needed]], at[kinds[job]]) for job, needed in pairs}),
        "count": len(ids),
        "box": {"width": WIDTH, "height": HEIGHT},
    }


def _kinds(ids: list[int], names: Mapping[int, str], needs: Needs, needed_by: Needs) -> dict[int, Hashable]:
    """Return what tells jobs that are not alike apart."""
    down, up = _numbers(ids, names, needs), _numbers(reversed(ids), names, needed_by)
    return {pk: (down[pk], up[pk]) for pk in ids}


def _numbers(ids: Iterable[int], names: Mapping[int, str], before: Needs) -> dict[int, int]:
    """Number the jobs by their name and the numbers of those before them."""
    numbers: dict[Hashable, int] = {}
    found: dict[int, int] = {}
    for pk in ids:
        key = names[pk], frozenset(found[one] for one in before[pk])
        found[pk] = numbers.setdefault(key, len(numbers))
    return found


def _box(pks: list[int], names: Mapping[int, str], counts: Counter[str], at: tuple[int, int]) -> dict[str, Any]:
    first, *others = pks
    worst = next(
        status for status in ("Error", "Stopped", "Running", "Scheduled", "Pending", "Success") if counts[status]
    )
    text = Truncator(names[first].rpartition(".")[2]).chars(MOST_TEXT)
    shown = ", ".join(f"{count:,} {status}" for status, count in counts.most_common())
    return {
        "x": at[0],
        "y": at[1],
        "text": f"{text} ({len(pks):,})" if others else text,
        "title": names[first],
        "status": shown if others else worst,
        "colour": f"harbor-graph-{COLOURS[worst]}",
        "url": "" if others else admin_url("harbor_executions_task_change", first),
    }


def _line(begin: tuple[int, int], end: tuple[int, int]) -> str:
    (x, y), (to_x, to_y) = (begin[0] + WIDTH, begin[1] + HEIGHT // 2), (end[0], end[1] + HEIGHT // 2)
    middle = (x + to_x) // 2
    return f"M{x} {y} C{middle} {y} {middle} {to_y} {to_x} {to_y}"
