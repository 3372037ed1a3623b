"""For a developer's own machine: debug pages, and a key that protects nothing."""

from settings.base import *  # noqa: F403
from settings.base import SECRET_KEY as _KEY

DEBUG = True
SECRET_KEY = _KEY or "for development only: protects nothing"
WHITENOISE_AUTOREFRESH = True
