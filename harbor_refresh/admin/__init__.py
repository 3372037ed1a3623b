"""The dashboard as the first page; users, groups and beat's schedule in the style of the other screens.

Only our own service registers them. The screens that a project has for these models stay.
"""

from django.contrib import admin

from harbor_refresh.executions.conf.declarations import is_service

if is_service():
    from harbor_refresh.admin import own_service  # noqa: F401

    admin.site.index_template = "harbor_refresh/admin/dashboard.html"
