"""Users, groups and beat's schedule in the looks of the rest, on the pages of this service.

Only here. A project of its own does not install `harbor_refresh`: what it has registered for these models stays.
"""

from harbor_refresh.admin import account, schedule

__all__ = ["account", "schedule"]
