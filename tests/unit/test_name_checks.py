"""Celery tasks of others that have the names of ours."""

import sys
from types import ModuleType

import pytest
from celery import shared_task

from harbor_refresh.tasks.broker.celery_queues import ROUTES
from harbor_refresh.tasks.checks import celery_options
from harbor_refresh.tasks.checks.celery_options import check_celery


def print_nothing() -> None:
    """The function of a host's Celery task."""


def test_our_own_celery_tasks_are_no_clash() -> None:
    assert check_celery() == []


def test_a_task_that_took_the_name_of_ours_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if our modules were elsewhere, and these were those of a project."""
    monkeypatch.setattr(celery_options, "PACKAGE", "elsewhere")
    found = [(one.id, one.msg) for one in check_celery()]
    ours = "harbor_refresh.tasks.celery_tasks"
    assert found == [
        ("harbor_tasks.E030", f"{ours}.{name[6:]} is a Celery task with the name {name}, which is one of ours.")
        for name in sorted(ROUTES)
    ]


def test_a_task_that_celery_has_dropped_for_ours_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    project = ModuleType("tasks")
    project.sweep = shared_task(name="shop.sweep")(print_nothing)  # type: ignore[attr-defined]
    project.act = "no Celery task"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tasks", project)
    (one,) = check_celery()
    assert one.msg == "tasks.sweep is a Celery task with the name tasks.sweep, which is one of ours."
