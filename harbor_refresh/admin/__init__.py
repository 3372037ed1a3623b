"""The dashboard as the first page; users, groups and beat's schedule in the style of the other screens.

Only this service registers them: harbor_refresh/apps.py refuses every other project. The screens that a project
has registered for these models stay.
"""

from django.contrib import admin

from harbor_refresh.admin import account, beat_schedule

admin.site.index_template = "harbor_refresh/admin/dashboard.html"

__all__ = ["account", "beat_schedule"]
