"""The dashboard as the first page; users, groups and beat's schedule in the style of the other screens.

Only this service registers them. Another project does not install `harbor_refresh`, so the screens that it has
registered for these models stay.
"""

from django.contrib import admin

from harbor_refresh.admin import account, beat_schedule

admin.site.index_template = "harbor_refresh/admin/dashboard.html"

__all__ = ["account", "beat_schedule"]
