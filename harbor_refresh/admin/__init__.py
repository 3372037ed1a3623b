"""Users, groups and beat's schedule in the style of the other screens, for this service.

Only this service registers them. Another project does not install `harbor_refresh`, so the screens that it has
registered for these models stay.
"""

from harbor_refresh.admin import account, beat_schedule

__all__ = ["account", "beat_schedule"]
