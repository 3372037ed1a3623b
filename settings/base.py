"""The settings that all environments share. Each variable is read here, once, through `settings.env`. The comment
`#:` above it is its meaning in docs/reference/settings.md, with links from that folder."""

import gc
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.templatetags.static import static
from django.urls import reverse, reverse_lazy
from psycopg import IsolationLevel

from harbor_refresh.executions.attached.attachment import HARBOR, SEARCH_PATH
from harbor_refresh.executions.conf import DECLARED as OF_EXECUTIONS
from harbor_refresh.tasks.broker.connecting import broker_of_celery
from harbor_refresh.tasks.conf import DECLARED as OF_TASKS
from settings import env

if TYPE_CHECKING:
    from django.http import HttpRequest

# A process makes hundreds of thousands of objects while it starts, and nearly all of them stay. To look for
# garbage after each 700 of them takes a fifth of the start.
gc.set_threshold(50_000, 20, 10)

BASE_DIR = Path(__file__).resolve().parent.parent
# Django Ninja's templates and files, for the page of the API. Ninja is no installed app, because then each worker,
# beat and command would import it and Pydantic.
NINJA = Path(str(distribution("django-ninja").locate_file("ninja")))

#: Django's secret key, the same for all programs. Required in production.
SECRET_KEY = env.secret("SECRET_KEY", "")
DEBUG = False
#: The host names that the web process answers to. Required in production.
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
#: The origins `https://…` from which forms are accepted.
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.staticfiles",
    "django_celery_beat",
    "harbor_refresh",
    "harbor_refresh.executions",
    "harbor_refresh.tasks",
]

MIDDLEWARE = [
    # first: probes and Prometheus know neither our host name nor HTTPS
    "harbor_refresh.web.probes.Probes",
    "harbor_refresh.logs.context.RequestIds",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "harbor_refresh.web.html_pages.CompressedPages",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "harbor_refresh.tasks.queue.connection.WaitsOnce",
]

ROOT_URLCONF = "harbor_refresh.web.urls"
WSGI_APPLICATION = "harbor_refresh.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # before the templates of the apps, of which these replace a few
        "DIRS": [BASE_DIR / "harbor_refresh/web/replaced_templates", NINJA / "templates"],
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
    {"NAME": f"django.contrib.auth.password_validation.{name}Validator"}
    for name in ("UserAttributeSimilarity", "MinimumLength", "CommonPassword", "NumericPassword")
]

TIME_ZONE = "UTC"
FORMAT_MODULE_PATH = ["settings.formats"]
LOGIN_REDIRECT_URL = "admin:index"
STATIC_URL = "static/"
STATICFILES_DIRS = [NINJA / "static"]
STATIC_ROOT = BASE_DIR / ".local" / "static"

# These are the settings of the service itself: those of the apps have names of their own, from the environment,
# and its admin may replace Django's screens of users and groups. A project sets HARBOR_REFRESH instead.
HARBOR_REFRESH_SERVICE = True

# executions/conf and tasks/conf declare each setting, with its default and its range.
# A project keeps everything until it says otherwise; the service keeps as many executions as Harbor does.
DEFAULTS_OF_SERVICE = {
    "VENDOR_EXECUTION_RETENTION_COUNT": {
        "IMAGE_SCAN": 1,
        "SBOM": 1,
        "SCAN_ALL": 1,
        "PURGE_AUDIT_LOG": 10,
        "EXECUTION_SWEEP": 10,
        "*": 50,
    },
    "REFRESH_HISTORY_DAYS": 30,
}
declared = {
    one.name: env.read(one, DEFAULTS_OF_SERVICE.get(one.name))
    for one in (*OF_EXECUTIONS.values(), *OF_TASKS.values())
}
globals().update(declared)
SET_IN_ENVIRONMENT = frozenset(filter(env.text, declared))

# The database. READ COMMITTED is required: the refresh takes its row locks in one statement and reads the tasks in
# the next, and only under READ COMMITTED does the second statement see the changes that the first waited for.
#: The database. Options after `?` go to libpq. Required in production.
DATABASES = {"default": env.database("DATABASE_URL", "postgresql://localhost:5432/harbor_refresh")}
DATABASES["default"]["CONN_MAX_AGE"] = 600
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
# A PgBouncer in transaction mode refuses the options of a connection and gives each transaction another
# session. Then ALTER ROLE sets what the options would set, and `manage.py doctor` says how; cursors live no
# longer than a transaction.
#: Whether a PgBouncer in transaction mode is in front of the database.
DATABASE_POOLED = env.value("DATABASE_POOLED", "flag", False)
DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"] = DATABASE_POOLED
# A transaction waits at most 5 s for a row; one that is idle for 20 s (a stopped process) loses its locks. A
# statement ends with its process: PostgreSQL looks for the client every 10 s.
SESSION_OPTIONS = {
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "20s",
    "client_connection_check_interval": "10s",
}
# attached to a running Harbor, its tables are found where they are, and ours are in a schema of their own
if declared["REFRESH_ATTACH"] == HARBOR:
    SESSION_OPTIONS["search_path"] = SEARCH_PATH
# How long a statement may take in each program. A migration may build an index for hours. A role behind a pooler
# has one limit for all programs, so it is not in SESSION_OPTIONS.
STATEMENT_TIMEOUTS = {"web": "30s", "beat": "60s", "worker": "10min", "command": "1h", "migrate": "0"}
# What stops, repeats or deletes an execution with all its tasks has the time of a worker, also in the web process.
LONG_STATEMENT_TIMEOUT = STATEMENT_TIMEOUTS["worker"]
_LIMITS = {**SESSION_OPTIONS, "statement_timeout": STATEMENT_TIMEOUTS[env.kind_of_process()]}
_SESSION = " ".join(f"-c {name}={value}" for name, value in _LIMITS.items())
DATABASES["default"]["OPTIONS"] = {
    "connect_timeout": 5,
    # a server that vanishes without closing its connections is noticed within half a minute
    "tcp_user_timeout": 30_000,
    "keepalives_idle": 20,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    **({} if DATABASE_POOLED else {"options": _SESSION}),
    **DATABASES["default"]["OPTIONS"],
    "isolation_level": IsolationLevel.READ_COMMITTED,
}

# Redis, and the broker, which is the same server unless CELERY_BROKER_URL names another, or a RabbitMQ.
# Of Harbor's two, the first is where its marks are; it is empty unless its cache has a database of its own.
#: The Redis of the queue: one server, or a primary behind Sentinel. Unset: Harbor's `_REDIS_URL_HARBOR` or else
#: `_REDIS_URL_CORE` is read. Required in production.
REDIS_URL = env.redis_url("REDIS_URL", "_REDIS_URL_HARBOR", "_REDIS_URL_CORE", default="redis://localhost:6379/0")
#: The seconds after which the Redis broker redelivers an unacknowledged message.
REFRESH_VISIBILITY_TIMEOUT_SECONDS = env.value("REFRESH_VISIBILITY_TIMEOUT_SECONDS", "number", 300, at_least=1)
_broker = broker_of_celery(
    #: Celery's broker: a Redis or a RabbitMQ. Unset: the Redis of the queue.
    env.broker_url("CELERY_BROKER_URL", default=REDIS_URL),
    REFRESH_VISIBILITY_TIMEOUT_SECONDS,
)
CELERY_BROKER_URL = _broker.url
# Celery reads the variable CELERY_BROKER_URL by itself, before that setting, and knows only its own form.
CELERY_BROKER_READ_URL = CELERY_BROKER_WRITE_URL = _broker.url
CELERY_BROKER_USE_SSL = _broker.tls

# The API. A body of 10,000 reports takes about 2 MB; with long messages, more.
DATA_UPLOAD_MAX_MEMORY_SIZE = 10 * 1024**2
# Nothing is cached: unfold would keep its searches.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}

# Celery. Each unusual line prevents an outage that has happened. The reasons:
# docs/explanation/decisions/0011-celery-settings.md.
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_SEND_TASK_EVENTS = True
CELERY_WORKER_CONSUMER = "harbor_refresh.consumer:Consumer"
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
# Celery closes the database connection around every task unless this says how often it may be used again.
CELERY_DB_REUSE_MAX = 1_000_000
CELERY_TIMEZONE = "UTC"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = _broker.options
CELERY_BEAT_SCHEDULER = "harbor_refresh.tasks.pipeline.beat:PatientScheduler"

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
#: The format of [log lines](log.md). `auto`: JSON in production unless stderr is a terminal, else text.
LOG_FORMAT = env.value("LOG_FORMAT", "one_of", "auto", choices=("auto", "text", "json"))
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {"()": "harbor_refresh.logs.formatters.TextLines"},
        "json": {"()": "harbor_refresh.logs.formatters.JSONLines"},
    },
    "filters": {"as_warning": {"()": "harbor_refresh.logs.formatters.AsWarning"}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "json" if LOG_FORMAT == "json" else "text"}
    },
    "loggers": {
        "httpx2": {"level": "WARNING"},  # it logs every request, and a job makes two
        "django.security.DisallowedHost": {"filters": ["as_warning"]},
        "waitress.queue": {"level": "ERROR"},  # it warns of each request that waits for a thread
    },
    "root": {
        "handlers": ["stderr"],
        #: The lowest level that is logged.
        "level": env.value("LOG_LEVEL", "one_of", "INFO", choices=LOG_LEVELS),
    },
}


def _page(title: str, icon: str, app: str, model: str) -> dict[str, Any]:
    """An entry of the admin's sidebar, for users who may see its page."""
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{app}_{model}_changelist"),
        "permission": lambda request: request.user.has_perm(f"{app}.view_{model}"),
    }


def _group(title: str, *pages: dict[str, Any]) -> dict[str, Any]:
    return {"title": title, "separator": True, "items": pages}


def _is_of_tasks(request: "HttpRequest") -> bool:
    """The page of errors lies below the list of tasks, and has an entry of its own."""
    errors = reverse("admin:harbor_executions_task_errors")
    return request.path.startswith(reverse("admin:harbor_executions_task_changelist")) and request.path != errors


FLOWER = {
    "title": "Flower",
    "icon": "local_florist",
    "link": declared["REFRESH_FLOWER_URL"],
    "active": lambda request: False,  # else unfold takes its address for that of the dashboard
}

UNFOLD = {
    "SITE_TITLE": "Harbor Refresh",
    "SITE_HEADER": "Harbor Refresh",
    "SITE_SUBHEADER": "Every status true",
    "SITE_SYMBOL": "sync",
    "SITE_URL": None,
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "DASHBOARD_CALLBACK": "harbor_refresh.admin.dashboard.index_context",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("executions/favicon.svg")}
    ],
    "STYLES": [
        lambda request: static("executions/parts.css"),
        lambda request: static("executions/in-unfold.css"),
    ],
    "SCRIPTS": [lambda request: static("executions/in-unfold.js")],
    "COLORS": {
        "primary": {
            "50": "oklch(97.1% .013 236)",
            "100": "oklch(94.3% .027 236)",
            "200": "oklch(89.2% .054 236)",
            "300": "oklch(81.7% .099 236)",
            "400": "oklch(73.4% .134 237)",
            "500": "oklch(65.2% .142 239)",
            # dark enough for text on every light background: 5.1:1 and more
            "600": "oklch(51% .13 242)",
            "700": "oklch(48.1% .121 242)",
            "800": "oklch(42.3% .101 241)",
            "900": "oklch(37.6% .083 241)",
            "950": "oklch(28.4% .062 244)",
        }
    },
    "SIDEBAR": {
        "navigation": [
            {
                "items": [
                    {"title": "Dashboard", "icon": "monitoring", "link": reverse_lazy("admin:index")},
                    *([FLOWER] if declared["REFRESH_FLOWER_URL"] else []),
                ]
            },
            _group(
                "Executions",
                _page("Executions", "sync", "harbor_executions", "execution"),
                _page("Tasks", "task_alt", "harbor_executions", "task") | {"active": _is_of_tasks},
                _page("Jobs", "work", "harbor_tasks", "job"),
                _page("Errors", "error", "harbor_executions", "task")
                | {"link": reverse_lazy("admin:harbor_executions_task_errors")},
                _page("History", "history", "harbor_executions", "statuschange"),
                _page("Queue", "stacks", "harbor_tasks", "pause"),
                _page("Limits", "speed", "harbor_tasks", "limit"),
            ),
            _group(
                "Notifications",
                _page("Subscriptions", "notifications", "harbor_executions", "subscription"),
                _page("Deliveries", "send", "harbor_executions", "delivery"),
            ),
            _group(
                "Schedule",
                _page("Periodic tasks", "schedule", "django_celery_beat", "periodictask"),
                _page("Intervals", "timer", "django_celery_beat", "intervalschedule"),
                _page("Crontabs", "calendar_month", "django_celery_beat", "crontabschedule"),
            ),
            _group(
                "Access",
                _page("Log of actions", "list_alt", "harbor_executions", "auditentry"),
                _page("API tokens", "key", "harbor_executions", "apitoken"),
                _page("Users", "person", "auth", "user"),
                _page("Groups", "group", "auth", "group"),
            ),
        ],
    },
}
