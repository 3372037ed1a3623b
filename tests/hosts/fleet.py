"""A project with models of its own, whose keys are a number, a UUID and text, and executions of their rows."""

from pathlib import Path
from typing import Any

from tests.hosts.host import Host

MODELS = """
import uuid
from django.db import models


class Named(models.Model):
    name = models.CharField(max_length=20)

    class Meta:
        abstract = True
        app_label = "fleet"


class Box(Named):
    pass


class Device(Named):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)


class Document(Named):
    path = models.CharField(max_length=200, primary_key=True)
"""
ADMIN = """
from django.contrib import admin
from {module} import ModelAdmin
from harbor_refresh import ExecutionInline
from shop.fleet.models import Box, Device, Document
from shop.sites import ops


class Upgrades(ExecutionInline):
    vendor_type = "UPGRADE"
    tab = {tab}


class ThingAdmin(ModelAdmin):
    fields = ("name",)
    inlines = (Upgrades,)


for site in (admin.site, ops):
    site.register([Box, Device, Document], ThingAdmin)
"""
BOTH_SITES = """
from django.contrib import admin
from django.urls import path
from harbor_refresh.executions.admin.site_pages import register_admin
from shop.sites import ops

{register}
urlpatterns = [path("admin/", admin.site.urls), path("ops/", ops.urls)]
"""
#: The options of the project, the module of its ModelAdmin, and the site that is looked at.
PLAIN, UNFOLD = "django.contrib.admin", "unfold.admin"
PROJECTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "a plain admin": ({}, PLAIN, "/admin/"),
    "a second site": ({"urls": BOTH_SITES.format(register="register_admin(ops)")}, PLAIN, "/ops/"),
    "unfold": ({"apps": ["unfold", "unfold.contrib.filters", PLAIN]}, UNFOLD, "/admin/"),
    "unfold, and a screen of Django": ({"apps": ["unfold", PLAIN]}, PLAIN, "/admin/"),
    "unfold's basic app and a plain admin": ({"apps": [PLAIN, "unfold.apps.BasicAppConfig"]}, PLAIN, "/admin/"),
}
MADE = """
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from shop.fleet.models import Box, Device, Document

with connection.schema_editor() as editor:
    for model in (Box, Device, Document):
        editor.create_model(model)
box, other = (Box.objects.create(name=name) for name in ("box", "other"))
document = Document.objects.create(name="document", path='a b/ü?&"><b>.pdf')
things = [box, Device.objects.create(name="device"), document]
made = {}
for thing in things:
    news = [NewExecution("UPGRADE", thing.pk, tasks=[NewTask(), NewTask()]) for _ in range(12)]
    made[thing] = [create(one) for one in news]
    create(NewExecution("SCAN", thing.pk))
    create(NewExecution("UPGRADE", 4711))
    last = made[thing][-1]
    report([Report(last.tasks.first().pk, "Error", 1, "no room")])
    refresh([last.pk])
client = Client()


def sign_in(name):
    client.force_login(User.objects.get(username=name))
    session = client.session
    session["second_factor"] = "given"
    session.save()


def page(thing):
    return f"{below}fleet/{thing._meta.model_name}/{quote(thing.pk)}/change/"


"""


def host_of(project: str, folder: Path, database: str, *, tab: bool = False, **options: Any) -> tuple[Host, str]:
    own, module, below = PROJECTS[project]
    apps = ["shop.fleet", *own.get("apps", [PLAIN])]
    files = {"fleet__models": MODELS, "fleet__admin": ADMIN.format(module=module, tab=tab)}
    joined = "import harbor_refresh\n\nharbor_refresh.connect(app)\n"
    return Host(folder, database, celery=joined, **{**own, "apps": apps, **files, **options}), below
