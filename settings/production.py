"""For production: no secret, database or host has a default, and `check --deploy` finds nothing."""

import logging
import sys

from settings import env
from settings.base import *  # noqa: F403
from settings.base import LOG_FORMAT, LOGGING

SECRET_KEY = env.secret("SECRET_KEY")
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS")
for _name, *_harbors in (("DATABASE_URL",), ("REDIS_URL", "_REDIS_URL_HARBOR", "_REDIS_URL_CORE")):
    if not any(env.secret(_one, "") for _one in (_name, *_harbors)):
        raise env.BadSetting(f"{_name}: got nothing, takes the URL of the server. Set {_name}.")
for _name in ("SECRET_KEY", "REFRESH_HARBOR_SECRET"):
    env.refuse_known_secret(_name)
if not ALLOWED_HOSTS:
    raise env.BadSetting("ALLOWED_HOSTS: got nothing, takes host names separated by commas.")

if LOG_FORMAT == "auto" and not sys.stderr.isatty():
    LOGGING["handlers"]["stderr"]["formatter"] = "json"
logging.captureWarnings(True)  # Python's warnings are lines like all others

SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
#: Production: whether plain HTTP is redirected to HTTPS.
SECURE_SSL_REDIRECT = env.value("SECURE_SSL_REDIRECT", "flag", True)
#: Production: the seconds for which browsers insist on HTTPS.
SECURE_HSTS_SECONDS = env.value("SECURE_HSTS_SECONDS", "integer", 31_536_000, at_least=0, at_most=63_072_000)
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
SECURE_HSTS_PRELOAD = True
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
