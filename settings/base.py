"""The settings that all environments share. Each variable is read here, once, through `settings.env`."""

from pathlib import Path
from typing import Any

from django.templatetags.static import static
from django.urls import reverse_lazy
from psycopg import IsolationLevel

from executions.conf import DECLARED as OF_EXECUTIONS
from settings import env
from tasks.conf import DECLARED as OF_TASKS

BASE_DIR = Path(__file__).resolve().parent.parent

SECRET_KEY = env.secret("SECRET_KEY", "")
DEBUG = False
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_celery_beat",
    "ninja",
    "harbor_refresh",
    "executions",
    "tasks",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "harbor_refresh.urls"
WSGI_APPLICATION = "harbor_refresh.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
LOGIN_REDIRECT_URL = "admin:index"
STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / ".local" / "static"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# The database. READ COMMITTED is required: the refresh takes its row locks in one statement and reads the tasks in
# the next, and only under READ COMMITTED does the second statement see the changes that the first waited for.
DATABASES = {"default": env.database("DATABASE_URL", "postgresql://localhost:5432/harbor_refresh")}
DATABASES["default"]["CONN_MAX_AGE"] = 600
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
DATABASES["default"]["OPTIONS"] = {
    "connect_timeout": 5,
    # a server that vanishes without closing its connections is noticed within half a minute
    "tcp_user_timeout": 30_000,
    "keepalives_idle": 20,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    # a transaction waits at most 5 s for a row; one that is idle for 20 s (a stopped process) loses its locks
    "options": "-c lock_timeout=5s -c idle_in_transaction_session_timeout=20s",
    **DATABASES["default"]["OPTIONS"],
    "isolation_level": IsolationLevel.READ_COMMITTED,
}

# Redis, and the broker, which is the same server unless CELERY_BROKER_URL names another.
REDIS_URL = env.redis_url("REDIS_URL", "_REDIS_URL_CORE", default="redis://localhost:6379/0")
CELERY_BROKER_URL = env.redis_url("CELERY_BROKER_URL", default=REDIS_URL)

# executions/conf.py and tasks/conf.py declare each setting, with its default and its range.
declared = {one.name: env.declared(one) for one in (*OF_EXECUTIONS.values(), *OF_TASKS.values())}
globals().update(declared)
# The intervals the environment names; the others are the administrator's, in the admin.
SET_IN_ENVIRONMENT = frozenset(name for name in declared if "INTERVAL" in name and env.text(name))

# The API. A body of 10,000 reports takes about 2 MB; with long messages, more.
DATA_UPLOAD_MAX_MEMORY_SIZE = 10 * 1024**2
# Only the counts of the API's rate limit are in the cache.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "harbor_refresh",
        "OPTIONS": {"socket_timeout": 1, "socket_connect_timeout": 1},
    }
}

# Celery. Each unusual line prevents an outage that has happened; docs/decisions describes them.
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_SEND_TASK_EVENTS = True
CELERY_TASK_SEND_SENT_EVENT = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
# Celery closes the database connection around every task unless this says how often it may be used again.
CELERY_DB_REUSE_MAX = 1_000_000
CELERY_TIMEZONE = "UTC"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": declared["REFRESH_VISIBILITY_TIMEOUT_SECONDS"],
    "unacked_restore_interval": 2,
    "unacked_restore_throttle": 1,
    # a worker that dies while it puts messages back leaves this lock behind, and a snapshot of Redis may hold it
    "unacked_mutex_expire": 10,
    "socket_connect_timeout": 5,
    "socket_timeout": 5,
    "socket_keepalive": True,
    # a publisher gives up within a second, because its caller waits and the message is only a hint
    "max_retries": 2,
    "interval_start": 0,
    "interval_step": 0.1,
    "interval_max": 0.2,
}
CELERY_BEAT_SCHEDULER = "tasks.beat:PatientScheduler"
CELERY_BEAT_SYNC_EVERY = 1
CELERY_BEAT_MAX_LOOP_INTERVAL = 5

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)-7s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    # it logs every request, and a job makes two
    "loggers": {"httpx": {"level": "WARNING"}},
    "root": {"handlers": ["stderr"], "level": env.one_of("LOG_LEVEL", "INFO", *LOG_LEVELS)},
}


def _page(title: str, icon: str, app: str, model: str) -> dict[str, Any]:
    """An entry of the admin's sidebar, for users who may see its page."""
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{app}_{model}_changelist"),
        "permission": lambda request: request.user.has_perm(f"{app}.view_{model}"),
    }


UNFOLD = {
    "SITE_TITLE": "Harbor Refresh",
    "SITE_HEADER": "Harbor Refresh",
    "SITE_SUBHEADER": "Every status true",
    "SITE_SYMBOL": "sync",
    "SITE_URL": None,
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda request: static("executions/favicon.svg"),
        }
    ],
    "COLORS": {
        "primary": {
            "50": "oklch(97.1% .013 236)",
            "100": "oklch(94.3% .027 236)",
            "200": "oklch(89.2% .054 236)",
            "300": "oklch(81.7% .099 236)",
            "400": "oklch(73.4% .134 237)",
            "500": "oklch(65.2% .142 239)",
            "600": "oklch(55.8% .139 242)",
            "700": "oklch(48.1% .121 242)",
            "800": "oklch(42.3% .101 241)",
            "900": "oklch(37.6% .083 241)",
            "950": "oklch(28.4% .062 244)",
        }
    },
    "SIDEBAR": {
        "navigation": [
            {
                "title": "Executions",
                "items": [
                    _page("Executions", "sync", "harbor_executions", "execution"),
                    _page("Tasks", "task_alt", "harbor_executions", "task"),
                    _page("Jobs", "work", "harbor_tasks", "job"),
                    _page("History", "history", "harbor_executions", "statuschange"),
                    _page("Quarantine", "report", "harbor_executions", "quarantine"),
                ],
            },
            {
                "title": "Notifications",
                "separator": True,
                "items": [
                    _page("Subscriptions", "notifications", "harbor_executions", "subscription"),
                    _page("Deliveries", "send", "harbor_executions", "delivery"),
                ],
            },
            {
                "title": "Schedule",
                "separator": True,
                "items": [
                    _page("Periodic tasks", "schedule", "django_celery_beat", "periodictask"),
                    _page("Intervals", "timer", "django_celery_beat", "intervalschedule"),
                    _page("Crontabs", "calendar_month", "django_celery_beat", "crontabschedule"),
                ],
            },
            {
                "title": "Access",
                "separator": True,
                "items": [
                    _page("API tokens", "key", "harbor_executions", "apitoken"),
                    _page("Users", "person", "auth", "user"),
                    _page("Groups", "group", "auth", "group"),
                ],
            },
        ],
    },
}
